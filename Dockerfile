# The service, the worker and the nightly run: one image, `docker build -t aftercall:0.1.0 .`
# Two stages: pip fills a virtual environment, the model's graph included, and the last one copies it.

ARG PYTHON=3.11.15-slim-trixie


FROM python:${PYTHON} AS packages
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
RUN python -m venv --without-pip /opt/aftercall
COPY constraints.txt pyproject.toml README.md ./
COPY sdk sdk
COPY embeddings embeddings
COPY mongo mongo
COPY retrieval retrieval
COPY ingest ingest
COPY service service
# Without the extras of other models: no torch.
RUN pip --python /opt/aftercall install -c constraints.txt ./sdk '.[servers]'


FROM python:${PYTHON}
LABEL org.opencontainers.image.title="aftercall" \
      org.opencontainers.image.description="The institutional memory of tool calls" \
      org.opencontainers.image.version="0.1.0"
# The numbers are fixed, so that volumes keep their owner from one image to the next.
RUN groupadd --gid 10001 aftercall \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/aftercall \
       --shell /usr/sbin/nologin aftercall \
    && install -d -o 10001 -g 10001 -m 0700 /var/lib/aftercall /var/lib/aftercall-keys
COPY --from=packages /opt/aftercall /opt/aftercall
# Two arenas: glibc's many keep what the threads of a burst have freed.
ENV PATH=/opt/aftercall/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    MALLOC_ARENA_MAX=2 \
    ORT_DISABLE_TELEMETRY=1 \
    AFTERCALL_SERVER_HOST=0.0.0.0 \
    AFTERCALL_SERVER_PORT=8799 \
    AFTERCALL_DATA_DIR=/var/lib/aftercall \
    AFTERCALL_LOG_FORMAT=json
USER 10001:10001
WORKDIR /var/lib/aftercall
VOLUME /var/lib/aftercall
EXPOSE 8799
STOPSIGNAL SIGTERM
# Ready, not merely up: the stores answer and the model is loaded.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:' + os.environ['AFTERCALL_SERVER_PORT'] + '/readyz', timeout=4)"]
ENTRYPOINT ["aftercall"]
CMD ["serve"]
