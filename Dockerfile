# One image for every role: `docker run throughline gateway --log kafka://…`. See docs/operations/containers.md.
# NODE_IMAGE: Node 24 with npm. Where no registry can be reached, `npm run containers -- start` makes one.
ARG NODE_IMAGE=node:24-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /build/src
COPY . .
# Without what tests need. The bundler alone is added, above the sources, in the version that they name.
RUN npm ci --ignore-scripts --no-audit --no-fund --omit=dev \
  && npm install --prefix /build --ignore-scripts --no-audit --no-fund "esbuild@$(node -p "require('./package.json').devDependencies.esbuild")" \
  && node --conditions=@throughline/source services/cli/scripts/build.ts \
  && rm -rf node_modules/.bin node_modules/throughline node_modules/@throughline \
  && mkdir /app && mv node_modules services/cli/bin services/cli/dist services/cli/package.json /app/

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="throughline" \
  org.opencontainers.image.description="A durable global event-log transport for MCP" \
  org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production
COPY --from=build /app /app
# The embedded log and what `serve` keeps beside it. Mount a volume or a tmpfs here when the root is read-only.
RUN mkdir /data && chown 1000:1000 /data
WORKDIR /data
VOLUME /data
USER 1000:1000
EXPOSE 8080 9464
# Exec form: node is the first process and handles SIGTERM itself. It starts no shell; servers started by --stdio may
# leave orphans, so run with an init (`docker run --init`, `init: true`).
ENTRYPOINT ["node", "/app/bin/throughline.js"]
CMD ["--help"]
