"""The server of `argonaut serve`: recognition over WebSocket and HTTP, with one recogniser in memory.

Open job.py first, and service.py: the recogniser, the threads that decode, and the limits that all clients share.
websocket.py speaks the protocol of vosk-server, files/ answers requests with a file, such as those of OpenAI's HTTP
interface, application.py lists the addresses, security.py decides who may call them, and running.py opens the port and
stops in order.  page/ is the page at /.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(__name__, __file__)
