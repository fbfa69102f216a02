"""CUDA C++ of a loop, made from its plan: a launch computes the products and elementwise operations of one step.

Each node has a matrix of its own for all steps, rows by columns, at its first row in the plan times the number of
columns. A block computes some rows of SLOTS slots: several threads, lanes, have a part of each scalar product, and the
first lane the operations of its row. Rows meet in products alone. A launch therefore ends before the products that
read what it computes: forward, those of the next step read delayed values at their source; backward, the products of a
step are computed at the beginning of the next launch, which adds them to the gradients of their operands.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from acoustic.kernels.cuda.source import THREADS, preamble
from acoustic.recurrence.codes import COLUMN, COPY, NEGATE, RELU, SIGMOID, TANH, TIMES, TIMES_COLUMN
from acoustic.recurrence.loop_plan import Delay, Operation, Place, Plan, Product

SLOTS = 4
ROWS = {"forward": 32, "backward": THREADS // 32}  # of a block
LOOP_HEAD = """
#define SLOTS %d
#define MATRIX(matrices, start, rows, column) (matrices + (start) * columns + (column) * (long long)(rows))
#define VALUE(start, rows) MATRIX(values, start, rows, column)[row]
#define GRADIENT(start, rows) MATRIX(gradients, start, rows, column)[row]

// The delayed column of a slot; none for the default.
__device__ const real *delayed(const real *source, const real *before, const bool *usable, long long column,
                               long long shift, long long rows) {
    if (!usable[column]) return 0;
    return column >= shift ? source + (column - shift) * rows : before ? before + column * rows : 0;
}

// The sum over the lanes of a row, in each of them.
__device__ real of_lanes(real part, int first, int stride, int lanes) {
    __shared__ real shared[THREADS];
    shared[threadIdx.x] = part;
    __syncthreads();
    real total = 0;
    for (int lane = 0; lane < lanes; ++lane) total += shared[first + lane * stride];
    __syncthreads();
    return total;
}
"""
# Neighbouring threads read neighbouring elements of a parameter: of a column, that is rows forward and lanes backward.
TILES = {
    "forward": """
    const int width = blockDim.x >= 64 ? 32 : 2, lanes = blockDim.x / width, stride = width;
    const int lane = threadIdx.x / width, own = threadIdx.x % width, first_lane = own;""",
    "backward": """
    const int lanes = blockDim.x >= 64 ? 32 : 2, width = blockDim.x / lanes, stride = 1;
    const int lane = threadIdx.x % lanes, own = threadIdx.x / lanes, first_lane = own * lanes;""",
}
NUMBERS = "long long step, long long slots, long long columns, real *values, real *gradients"
EXPRESSIONS = {
    COPY: "{x}", NEGATE: "-{x}", COLUMN: "{x}", TIMES: "{x} * {y}", TIMES_COLUMN: "{x} * {y}",
    SIGMOID: "(tanh({x} * real(0.5)) + 1) * real(0.5)", TANH: "tanh({x})", RELU: "{x} < 0 ? 0 : {x}",
}  # fmt: skip
DERIVATIVES = {SIGMOID: "g * ({v} * (1 - {v}))", TANH: "g * (1 - {v} * {v})", RELU: "{v} > 0 ? g : 0"}


@dataclass
class Launch:
    """The products of a launch, which come first, and its elementwise operations."""

    products: list[Product]
    operations: list[Operation]


def launches_of(plan: Plan) -> list[Launch]:
    """The launches of a forward step in order: a product begins another one if this one has computed its operand."""
    launches = [Launch([], [])]
    for step in (step for segment in plan.segments for step in segment):
        last = launches[-1]
        if isinstance(step, Operation):
            last.operations.append(step)
        elif last.operations or step.operand in {(True, product.home) for product in last.products}:
            launches.append(Launch([step], []))
        else:
            last.products.append(step)
    return launches


class LoopSource:
    """Makes the kernels of a plan for one number type: kernel_forward0, ..., kernel_backward0, ....

    All kernels have the same parameters: step, number of slots and of columns, values, gradients, for each delay where
    it is usable and the values before the minibatch, then the operands outside without frames by number.
    """

    def __init__(self, plan: Plan, dtype: type) -> None:
        self.plan = plan
        self.dtype = dtype
        self.launches = launches_of(plan)
        self.delays = plan.loop.delays
        self._delay_of = {delay.position: number for number, delay in enumerate(self.delays)}
        self.outside = sorted({product.parameter for product in plan.inside} | plan.columns.keys())
        self.most_rows = max(shape.rows for shape in plan.loop.shapes)

    def text(self, received: Collection[int] | None) -> str:
        """The forward kernels or, with the nodes whose gradient comes from outside, the backward ones."""
        bodies = self._forward() if received is None else self._backward(received)
        way = "forward" if received is None else "backward"
        pointers = [f"const bool *usable{d}, const real *before{d}" for d in range(len(self.delays))]
        pointers += [f"const real *o{at}" for at in self.outside]
        parameters = ", ".join([NUMBERS, *pointers])
        kernels = [
            f"""
extern "C" __global__ void kernel_{way}{number}({parameters}) {{{TILES[way]}
    const long long tiles = ({self.most_rows} + width - 1) / width, sets = (slots + SLOTS - 1) / SLOTS;
    for (long long tile = blockIdx.x; tile < tiles * sets; tile += gridDim.x) {{
        const long long row = tile % tiles * width + own, first = tile / tiles * SLOTS;
{body}
    }}
}}"""
            for number, body in enumerate(bodies)
        ]
        return "\n".join([preamble(self.dtype, LOOP_HEAD % SLOTS), *kernels])

    # ---- what both directions have

    def _rows(self, position: int) -> int:
        return self.plan.loop.shapes[position].rows

    def _element(self, kind: str, place: Place) -> str:
        """The element of the present row of a node or an operand outside."""
        if not place[0] and place[1] in self.plan.columns:
            return f"o{place[1]}[row]"
        return f"{kind}({self.plan.row_of(place)}, {self.plan.loop.shape(place).rows})"

    def _sums(self, pointer: str, missing: str, length: int, weights: dict[str, tuple[str, int]]) -> str:
        """Products of a column with this row of some matrices, in all lanes.

        pointer: to the column of a slot, or to none; missing: its elements then; weights: by the name of the sums,
        element k of the row, and how many rows there are.
        """
        totals = ", ".join(f"{name}[SLOTS] = {{0}}" for name in weights)
        loads = " ".join(
            f"real w_{total} = row < {rows} ? {element} : 0;" for total, (element, rows) in weights.items()
        )
        terms = " ".join(f"{name}[s] += w_{name} * x;" for name in weights)
        sums = " ".join(f"{name}[s] = of_lanes({name}[s], first_lane, stride, lanes);" for name in weights)
        return f"""
        real {totals};
        {{
            const real *source[SLOTS];
            for (int s = 0; s < SLOTS; ++s) {{
                const long long slot = first + s < slots ? first + s : slots - 1, column = step * slots + slot;
                source[s] = {pointer};
            }}
            for (long long k = lane; k < {length}; k += lanes) {{
                {loads}
                #pragma unroll
                for (int s = 0; s < SLOTS; ++s) {{ real x = source[s] ? source[s][k] : real({missing}); {terms} }}
            }}
        }}
        #pragma unroll
        for (int s = 0; s < SLOTS; ++s) {{ {sums} }}"""

    def _for_slots(self, statements: Sequence[tuple[int, str]]) -> str:
        """Statements for the elements of this row of all slots, each with its number of rows."""
        lines = []
        for rows, group in groupby(statements, key=lambda each: each[0]):
            lines += [f"if (row < {rows}) {{", *(f"    {{ {statement} }}" for _, statement in group if statement), "}"]
        text = "\n            ".join(lines)
        return f"""
        #pragma unroll
        for (int s = 0; s < SLOTS; ++s) if (lane == 0 && first + s < slots) {{
            const long long slot = first + s, column = step * slots + slot;
            {text}
        }}"""

    # ---- forward

    def _forward(self) -> Iterator[str]:
        for number, launch in enumerate(self.launches):
            statements: list[tuple[int, str]] = []
            if number == 0:
                statements += [(delay.rows, self._read(delay)) for delay in self.delays]
            groups: dict[Place, list[Product]] = {}
            for product in launch.products:
                groups.setdefault(product.operand, []).append(product)
            body = "".join(self._products(*group, from_source=number == 0) for group in groups.items())
            for product in launch.products:
                out = self._element("VALUE", (True, product.home))
                rows = self._rows(product.home)
                statements.append((rows, f"{out} = sum{product.position}[s]{f' + {out}' if product.keep else ''};"))
            statements += [(self._rows(each.out), self._operation(each)) for each in launch.operations]
            yield body + self._for_slots(statements)

    def _past(self, delay: Delay) -> str:
        """What points to a delay's column of this step, or to none."""
        number = self._delay_of[delay.position]
        source = f"MATRIX(values, {self.plan.rows[delay.source]}, {delay.rows}, 0)"
        return f"delayed({source}, before{number}, usable{number}, column, {delay.steps} * slots, {delay.rows})"

    def _default(self, delay: Delay) -> str:
        return repr(float(delay.node.settings["defaultHiddenActivity"]))

    def _read(self, delay: Delay) -> str:
        out = self._element("VALUE", (True, delay.position))
        return f"const real *past = {self._past(delay)}; {out} = past ? past[row] : real({self._default(delay)});"

    def _products(self, operand: Place, products: Sequence[Product], from_source: bool) -> str:
        length = self.plan.loop.shape(operand).rows
        weights = {}
        for product in products:
            rows = self._rows(product.home)
            weights[f"sum{product.position}"] = f"o{product.parameter}[row + k * {rows}]", rows
        if from_source:  # other threads write the delay's rows in this launch
            delay = self.delays[self._delay_of[operand[1]]]
            return self._sums(self._past(delay), self._default(delay), length, weights)
        return self._sums(f"MATRIX(values, {self.plan.row_of(operand)}, {length}, column)", "0", length, weights)

    def _operation(self, operation: Operation) -> str:
        out = self._element("VALUE", (True, operation.out))
        x = self._element("VALUE", operation.x)
        y = "" if operation.y is None else self._element("VALUE", operation.y)
        before = f"{out} + " if operation.keep else ""
        return f"{out} = {before}({EXPRESSIONS[operation.code].format(x=x, y=y)});"

    # ---- backward

    def _backward(self, received: Collection[int]) -> Iterator[str]:
        """For each launch of the forward pass its gradients, the last one first."""
        written = {self.plan.rows[position] for position in received}
        operations = [operation for launch in self.launches for operation in launch.operations]
        read = {(True, position) for position in received}  # nodes with a gradient besides that of products
        read |= {place for operation in operations for place in (operation.x, operation.y) if place is not None}
        waiting: list[Product] = []
        bodies: list[str] = []
        for number, launch in reversed(list(enumerate(self.launches))):
            body = ""
            statements: list[tuple[int, str]] = []
            if number == len(self.launches) - 1:
                for delay in self.delays:
                    sums, statement = self._delayed_gradient(delay, (True, delay.position) in read, written)
                    body += sums
                    statements.append((delay.rows, statement))
            for product in waiting:
                rows = self.plan.loop.shape(product.operand).rows
                column = f"MATRIX(gradients, {self.plan.rows[product.home]}, {self._rows(product.home)}, column)"
                body += self._transposed(product, column)
                statements.append((rows, self._add(product.operand, f"sum{product.position}[s]", written)))
            for operation in reversed(launch.operations):
                statements.append((self._rows(operation.out), self._operation_gradient(operation, written)))
            waiting = [product for product in launch.products if product.operand[1] not in self._delay_of]
            bodies.append(body + self._for_slots(statements))
        return iter(bodies)

    def _transposed(self, product: Product, column: str) -> str:
        rows = self._rows(product.home)
        weight = f"o{product.parameter}[k + row * {rows}]", self.plan.loop.shape(product.operand).rows
        return self._sums(column, "0", rows, {f"sum{product.position}": weight})

    def _delayed_gradient(self, delay: Delay, has_own: bool, written: set[int]) -> tuple[str, str]:
        """What adds to a delayed node's gradient that of the delay at the step that reads this one.

        has_own: whether the delay has a gradient besides that of products.
        """
        number = self._delay_of[delay.position]
        later = f"(column + {delay.steps} * slots)"
        reads = f"({later} >= 0 && {later} < columns && usable{number}[{later}])"
        products = [product for product in self.plan.inside if product.operand == (True, delay.position)]
        sums = ""
        terms = [f"sum{product.position}[s]" for product in products]
        for product in products:
            home = f"MATRIX(gradients, {self.plan.rows[product.home]}, {self._rows(product.home)}, {later})"
            sums += self._transposed(product, f"{reads} ? {home} : 0")
        if has_own:
            own = f"MATRIX(gradients, {self.plan.rows[delay.position]}, {delay.rows}, {later})[row]"
            terms.append(f"({reads} ? {own} : 0)")
        return sums, self._add((True, delay.source), " + ".join(terms) or "0", written)

    def _add(self, place: Place, term: str, written: set[int]) -> str:
        """Add a term to a gradient, or write it if that holds nothing yet."""
        target = self._element("GRADIENT", place)
        start = self.plan.row_of(place)
        before = f"{target} + " if start in written else ""
        written.add(start)
        return f"{target} = {before}({term});"

    def _operation_gradient(self, operation: Operation, written: set[int]) -> str:
        code = operation.code
        gradient = self._element("GRADIENT", (True, operation.out))
        text = f"const real g = {gradient}; "
        if code in DERIVATIVES:
            change = DERIVATIVES[code].format(v=self._element("VALUE", (True, operation.out)))
            if self.plan.row_of(operation.x) == self.plan.rows[operation.out]:
                return f"{text}{gradient} = {change};"
            return text + self._add(operation.x, change, written)
        if code == TIMES:
            assert operation.y is not None
            text += self._add(operation.y, f"g * {self._element('VALUE', operation.x)}", written)
            return text + self._add(operation.x, f"g * {self._element('VALUE', operation.y)}", written)
        if code == TIMES_COLUMN:
            assert operation.y is not None
            return text + self._add(operation.x, f"g * {self._element('VALUE', operation.y)}", written)
        return "" if code == COLUMN else text + self._add(operation.x, "-g" if code == NEGATE else "g", written)
