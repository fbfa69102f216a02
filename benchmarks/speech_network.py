"""The network of benchmarks/speech_peer.py: PyTorch's, with the layers and data of one of ours, trained as is usual.

AdamW, or SGD with Nesterov's momentum; a rate that warms up in a line and falls as a cosine; batch normalisation,
dropout, SpecAugment.  It reads minibatches with our reader, so both sides see the same frames in the same order.
"""

import math
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

WARM_UP, MOMENTUM = 0.05, 0.9  # share of the updates; of SGD
WEIGHT_DECAY = {"AdamW": 0.01, "SGD": 1e-4}
SPEC_AUGMENT = "specAugment=[timeWidth=20]"


@dataclass(frozen=True)
class Recipe:
    """A way to train the peer."""

    optimiser: str = "AdamW"
    rate: float = 1e-3
    dropout: float = 0.2
    normalised: bool = True
    masks: bool = True

    def __str__(self) -> str:
        extras = f"{', batch normalisation' if self.normalised else ''}{', SpecAugment' if self.masks else ''}"
        return f"{self.optimiser} {self.rate:g}, dropout {self.dropout:g}{extras}"


CANDIDATES = (
    Recipe(),
    Recipe(dropout=0.4),
    Recipe(rate=3e-3),
    Recipe(rate=5e-4, normalised=False),
    Recipe(masks=False, dropout=0.4),
    Recipe("SGD", rate=0.1),
)


def training_block(model: Path, changes: str = "") -> Any:
    """The block of the configuration that trained a network, with changes."""
    from readers.config.config import load_config

    content = Path(f"{model}.config").read_text(encoding="utf-8")
    settings = [f"Train=[{content}]", *([f"Train=[{changes}]"] if changes else [])]
    return load_config(settings).block("Train")


def feature_size(scp: Path) -> int:
    """Values of a frame in the files of a list."""
    from readers.htk.parameter_file import read_htk_header
    from readers.htk.scp import read_scp

    return read_htk_header(read_scp(scp)[0].path).dim


@dataclass
class Trained:
    """The peer with the weights of its best epoch."""

    network: Any
    log_prior: Any
    window: int
    history: list[dict[str, float]]

    def score(self, torch: Any, features: Any) -> Any:
        """Features (d, T) -> log-likelihoods (K, T) float32."""
        import numpy as np

        size = self.window // 2
        padded = np.pad(features, ((0, 0), (size, size)), mode="edge").astype(np.float32)
        frames = torch.from_numpy(np.ascontiguousarray(padded.T))
        windows = frames.unfold(0, self.window, 1).transpose(1, 2).reshape(features.shape[1], -1)
        with torch.inference_mode():
            return (self.network(windows).log_softmax(1) - self.log_prior).T.numpy()


def train_peer(torch: Any, model: Path, epoch_frames: int | None, recipe: Recipe, epochs: int, path: Path) -> Trained:
    """Train the peer of our network, or go on where `path` ends; the epoch with the lowest development loss counts."""
    import numpy as np

    from readers.minibatches.base import open_reader

    block = training_block(model, f"reader=[features=[{SPEC_AUGMENT}]]" if recipe.masks else "")
    training = Training(torch, model, block, epoch_frames, recipe, epochs)
    if path.exists():
        training.load(path)
    with open_reader(block.block("reader"), 0) as reader, open_reader(block.block("cvReader"), 0) as dev:
        if not training.history:
            normalise(torch, training.network[0], reader, training.minibatch, training.frames)
        for epoch in range(len(training.history), epochs):
            training.run_epoch(epoch, reader, dev)
            training.save(path)
    training.network.load_state_dict(training.best, strict=False)
    training.network.eval()
    log_prior = torch.from_numpy(np.log(training.counts / training.counts.sum()))
    scp = block.block("reader").block("features").path("scpFile")
    return Trained(training.network, log_prior, training.sizes[0] // feature_size(scp), training.history)


class Training:
    """A training of the peer, an epoch at a time, which can be stored between two."""

    def __init__(
        self, torch: Any, model: Path, block: Any, epoch_frames: int | None, recipe: Recipe, epochs: int
    ) -> None:
        import numpy as np

        from acoustic.descriptions.builders.simple import SimpleNetworkOptions

        sgd = block.block("SGD")
        self.torch = torch
        self.sizes = tuple(SimpleNetworkOptions.from_block(block.block("SimpleNetworkBuilder")).layer_sizes)
        self.minibatch = sgd.int("minibatchSize")
        self.frames = epoch_frames or sgd.int("epochSize")
        self.epochs = epochs
        self.identity = {"recipe": asdict(recipe), "epochs": epochs, "frames": self.frames, "model": str(model)}
        torch.manual_seed(0)
        self.network = peer_network(torch, self.sizes, recipe)
        settings = {"lr": recipe.rate, "weight_decay": WEIGHT_DECAY[recipe.optimiser]}
        if recipe.optimiser == "SGD":
            settings |= {"momentum": MOMENTUM, "nesterov": True}
        self.optimiser = getattr(torch.optim, recipe.optimiser)(self.network.parameters(), **settings)
        self.rate = recipe.rate
        self.updates = 0
        self.history: list[dict[str, float]] = []
        self.best: dict[str, Any] = {}
        self.counts = np.ones(self.sizes[-1], np.float32)

    def run_epoch(self, epoch: int, reader: Any, dev: Any) -> None:
        """Train for an epoch, and measure the network on dev."""
        import numpy as np

        torch = self.torch
        criterion = torch.nn.CrossEntropyLoss()
        self.network.train()
        self.network[0].eval()  # the input keeps its mean and deviation
        torch.manual_seed(epoch)  # so that a training that was stopped goes on with the same dropout
        frames = 0
        all_updates = self.epochs * -(-self.frames // self.minibatch)
        begin = time.process_time()
        for minibatch in reader.training_minibatches(epoch, self.minibatch, self.frames):
            for group in self.optimiser.param_groups:
                group["lr"] = self.rate * share_of_rate(self.updates, all_updates)
            self.optimiser.zero_grad()
            x, y = tensors_of(torch, minibatch)
            criterion(self.network(x), y).backward()
            self.optimiser.step()
            frames += len(y)
            self.updates += 1
            if not epoch:
                self.counts += np.bincount(y.numpy(), minlength=len(self.counts)).astype(np.float32)
        seconds = time.process_time() - begin
        loss, errors = measure(torch, self.network, dev, self.minibatch)
        self.history.append({"frames": frames, "seconds": seconds, "loss": loss, "errors": errors})
        if loss <= min(row["loss"] for row in self.history):
            self.best = self._weights()
        speed = f"{frames / seconds:.0f} frames/s"
        print(f"  epoch {epoch + 1}/{self.epochs}: {speed}, dev {loss:.4f}, {errors:.1%} wrong", flush=True)

    def _weights(self) -> dict[str, Any]:
        state = self.network.state_dict()
        return {name: value.clone() for name, value in state.items() if value.is_floating_point()}

    def save(self, path: Path) -> None:
        """Store everything that the next epochs need."""
        from readers.tables.tensor_file import save_tensors

        arrays = {"counts": self.counts}
        arrays |= {f"best.{name}": value.numpy() for name, value in self.best.items()}
        arrays |= {f"now.{name}": value.numpy() for name, value in self._weights().items()}
        for number, parameter in enumerate(self.network.parameters()):
            state = self.optimiser.state[parameter].items()
            arrays |= {f"state{number}.{name}": value.numpy() for name, value in state if name != "step"}
        save_tensors(path, arrays, {"identity": self.identity, "updates": self.updates, "history": self.history})

    def load(self, path: Path) -> None:
        """Go on with what `save` stored.  Ends the program for another training."""
        import numpy as np

        from readers.tables.tensor_file import load_tensors

        arrays, metadata = load_tensors(path)
        if metadata["identity"] != self.identity:
            raise SystemExit(f"{path}: of another training; expected {self.identity}; choose another --out")
        self.updates, self.history, self.counts = metadata["updates"], metadata["history"], arrays.pop("counts")
        parts: dict[str, dict[str, Any]] = {}
        for name, array in arrays.items():
            part, _, rest = name.partition(".")
            parts.setdefault(part, {})[rest] = self.torch.from_numpy(np.ascontiguousarray(array))
        self.best = parts["best"]
        self.network.load_state_dict(parts["now"], strict=False)
        for number, parameter in enumerate(self.network.parameters()):
            self.optimiser.state[parameter] = parts[f"state{number}"]
            if "exp_avg" in parts[f"state{number}"]:
                self.optimiser.state[parameter]["step"] = self.torch.tensor(float(self.updates))


def share_of_rate(update: int, updates: int) -> float:
    """Of the greatest learning rate: up in a line, then down as a cosine."""
    warm = max(int(WARM_UP * updates), 1)
    if update < warm:
        return (update + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * min((update - warm) / max(updates - warm, 1), 1)))


def peer_network(torch: Any, sizes: tuple[int, ...], recipe: Recipe) -> Any:
    """Normalisation of the input with a mean and a deviation, and rectified linear layers."""
    nn = torch.nn
    layers = [nn.BatchNorm1d(sizes[0], affine=False, momentum=None)]
    for before, after in pairwise(sizes[:-1]):
        linear = nn.Linear(before, after)
        nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
        layers += [
            linear,
            *([nn.BatchNorm1d(after)] if recipe.normalised else []),
            nn.ReLU(),
            nn.Dropout(recipe.dropout),
        ]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


def normalise(torch: Any, layer: Any, reader: Any, size: int, frames: int) -> None:
    """Set the input's mean and deviation from some minibatches, for good."""
    sums = [tensors_of(torch, minibatch)[0] for minibatch, _ in zip(reader.minibatches(0, size, frames), range(100))]
    everything = torch.cat(sums)
    layer.running_mean.copy_(everything.mean(0))
    layer.running_var.copy_(everything.var(0))


def tensors_of(torch: Any, minibatch: Any) -> tuple[Any, Any]:
    """Features (N, d) and classes (N,)."""
    import numpy as np

    x = torch.from_numpy(np.ascontiguousarray(minibatch.matrices["features"].T))
    return x, torch.from_numpy(np.asarray(minibatch.classes["labels"], np.int64))


def measure(torch: Any, network: Any, reader: Any, size: int) -> tuple[float, float]:
    """The mean loss of a frame, and the share of frames that are wrong."""
    network.eval()
    total, wrong, count = 0.0, 0, 0
    with torch.inference_mode():
        for minibatch in reader.minibatches(0, size):
            x, y = tensors_of(torch, minibatch)
            outputs = network(x)
            total += torch.nn.functional.cross_entropy(outputs, y, reduction="sum").item()
            wrong += int((outputs.argmax(1) != y).sum())
            count += len(y)
    return total / count, wrong / count
