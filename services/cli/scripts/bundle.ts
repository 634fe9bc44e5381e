/** Bundles the package: the packages of this workspace go in, those of npm stay outside and are declared. */
import { readFileSync, rmSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

export const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
const ROOT = path.resolve(PACKAGE, '../..');

/** Names of the files in dist; what finds another one by its place (a worker thread, the demo server) relies on them. */
const ENTRIES = {
  main: 'services/cli/src/main.ts',
  'demo-server': 'services/cli/src/demo-server.ts',
  'sqlite-worker': 'libs/log/src/sqlite/sqlite-worker.ts',
};

interface Manifest {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

export interface Bundled {
  /** npm packages that the bundle imports. */
  readonly imported: readonly string[];
  /** npm packages that ended up inside it: dependencies that nobody declared. */
  readonly inlined: readonly string[];
}

/** `folder` is relative to the root of the project. */
export function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(path.join(ROOT, folder, 'package.json'), 'utf8')) as Manifest;
}

/** Replaces `outdir`. */
export async function bundle(outdir: string): Promise<Bundled> {
  rmSync(outdir, { recursive: true, force: true });
  const { metafile } = await build({
    absWorkingDir: ROOT,
    entryPoints: ENTRIES,
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    conditions: ['@throughline/source'],
    external: Object.keys(readManifest('services/cli').dependencies ?? {}),
    metafile: true,
    logLevel: 'warning',
  });
  const imports = Object.values(metafile.outputs).flatMap((output) => output.imports);
  const outside = imports.filter(({ external, path: name }) => external === true && !isBuiltin(name));
  const inside = Object.keys(metafile.inputs).filter((file) => file.includes('node_modules/'));
  return {
    imported: unique(outside.map(({ path: name }) => packageOf(name))),
    inlined: unique(inside.map((file) => packageOf(file.split('node_modules/').at(-1) ?? file))),
  };
}

/** The versions that the workspace packages ask for, by npm package. */
export function workspaceVersions(): Map<string, string> {
  const folders = ['protocol', 'log', 'history', 'tail', 'telemetry'].map((name) => `libs/${name}`);
  const versions = new Map<string, string>();
  for (const folder of [...folders, 'services/gateway', 'services/worker']) {
    for (const [name, version] of Object.entries(readManifest(folder).dependencies ?? {}))
      if (!name.startsWith('@throughline/')) versions.set(name, version);
  }
  return versions;
}

/** `@scope/name/sub` is of `@scope/name`. */
function packageOf(name: string): string {
  return name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/');
}

function unique(names: readonly string[]): string[] {
  return [...new Set(names)].sort();
}
