# The API and the worker on a PostgreSQL that DATABASE_URL names: the embedded one is not in here.
# docs/guides/container.md tells how it is run; test/container.program.test.ts holds what it promises.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
# Sources change more often than dependencies: these layers are made anew only with the lock file.
COPY package.json package-lock.json ./
# With the optional packages: esbuild, which bundles the service and the console, is a program among them.
RUN npm ci --workspaces=false --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY src src
COPY chains chains
COPY signer signer
COPY console console
COPY docs-page docs-page
RUN npm run build:server && npm run build:console

FROM ${NODE_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Bursar" \
      org.opencontainers.image.description="Self-hosted financial platform API on a double-entry ledger" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=8080 \
    BURSAR_METRICS_HOST=0.0.0.0 \
    BURSAR_METRICS_PORT=9464 \
    BURSAR_DATA_DIR=/data
WORKDIR /app
# The one folder that is written to, and only in sandbox mode: the demo's credentials.
RUN install -d -o 1000 -g 1000 -m 700 /data
VOLUME /data
COPY package.json LICENSE ./
COPY docs-page docs-page
COPY migrations migrations
COPY --from=build /app/dist dist
# A number, so that Kubernetes can see that it is not root. Everything in /app is root's.
USER 1000:1000
EXPOSE 8080 9464
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health/ready`, { signal: AbortSignal.timeout(5000) }).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
STOPSIGNAL SIGTERM
# The flags of `npm start`, without npm in between: signals reach the service, which stops in order.
ENTRYPOINT ["node", "--min-semi-space-size=32", "--max-semi-space-size=32", "--heap-growing-percent=20", "--no-allocation-site-pretenuring", "dist/main.js"]
CMD ["serve"]
