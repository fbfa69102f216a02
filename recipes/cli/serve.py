"""Recognise speech for other programs: a WebSocket and HTTP server with one bundle.

worked example:
  argonaut serve an4.argo
answers on this machine, port 2700:
  ws://127.0.0.1:2700      the WebSocket protocol of vosk-server, for audio while it is spoken
  http://127.0.0.1:2700/v1/audio/transcriptions      OpenAI's interface, for files
  http://127.0.0.1:2700    a page with a microphone, in a browser
Other machines can connect with --host 0.0.0.0; then use --token-file, and --tls-cert with --tls-key.

The server needs more packages: pip install '.[serve]'
SIGTERM and Ctrl-C stop it: open streams get their last result within --grace seconds.
Exit status: 0 after that, 1 if streams had to be cut off.
"""

import os
import sys

from recipes.cli.command import Command, Console
from recipes.cli.console import with_flags
from recipes.serve.options import ServeOptions


def run(options: ServeOptions, console: Console) -> int:
    from recipes.serve.job import serve

    result = serve(options, log=lambda line: console.tell(with_flags(line)))
    print(f"streams {result.num_streams}; audio {result.seconds:.0f} s; refused {result.num_refused}")
    if result.is_decoding:  # a thread cannot be stopped, and Python would wait for it
        console.tell("a file was not finished within the grace period")
        sys.stdout.flush()
        os._exit(1)
    return 0 if result.ended_in_order else 1


COMMAND = Command("serve", ServeOptions, run)
