# A server for a bundle:
#   docker build -t argonaut .
#   docker run --init -p 127.0.0.1:2700:2700 -v ./demo.argo:/bundle.argo:ro argonaut
FROM python:3.12-slim

# Kernels are compiled once, here, for the type of processor of this machine; the server only reads them.
ENV NUMBA_CACHE_DIR=/opt/kernels PIP_NO_CACHE_DIR=1
COPY . /src
RUN pip install '/src[serve]' && rm -r /src && argonaut warmup && chmod -R a+rX /opt/kernels

RUN useradd --system --no-create-home argonaut
USER argonaut
EXPOSE 2700
HEALTHCHECK --start-period=30s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:2700/healthz', timeout=5)"]
ENTRYPOINT ["argonaut", "serve"]
CMD ["/bundle.argo", "--host", "0.0.0.0"]
