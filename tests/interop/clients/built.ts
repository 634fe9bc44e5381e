/** Clients that a compiler builds from a driver: built once for each state of its sources, into the cache. */
import { createHash } from 'node:crypto';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { cached, step } from '../cache.ts';
import { connectDriven } from '../driven-client.ts';
import type { ClientSource } from '../interop-client.ts';

interface Built {
  readonly name: string;
  readonly language: 'go' | 'rust';
  /** Of the SDK, as it stands in this file of the driver. */
  readonly version: { readonly file: string; readonly pattern: RegExp };
  readonly compiler: string;
  /** The program must be at `output`; `scratch` is for all else. */
  args(output: string): readonly string[];
  environment?(scratch: string): Readonly<Record<string, string>>;
  /** Where the compiler puts the program in the folder. */
  readonly program: string;
}

const DIGEST = 12;

function builtClient(built: Built): ClientSource {
  const { name } = built;
  const source = fileURLToPath(new URL(`../drivers/${built.language}`, import.meta.url));
  return {
    name,
    async prepare(options) {
      const files = globSync('**/*.{go,mod,sum,rs,toml,lock}', { cwd: source }).sort();
      const digest = createHash('sha256');
      for (const file of files) digest.update(file).update(readFileSync(path.join(source, file)));
      const found = await cached(`${built.language}-${digest.digest('hex').slice(0, DIGEST)}`, options, (folder) =>
        step(built.compiler, built.args(path.join(folder, built.program)), {
          cwd: source,
          environment: built.environment?.(folder) ?? {},
        }),
      );
      if ('failed' in found) return { name, skipped: found.failed };
      const version = built.version.pattern.exec(readFileSync(path.join(source, built.version.file), 'utf8'))?.[1];
      if (version === undefined) throw new Error(`${built.version.file} names no version of the SDK`);
      const driver = { file: path.join(found.folder, built.program), args: [] };
      return { name, version, reportsProgress: true, connect: (url) => connectDriven(driver, url) };
    },
  };
}

export const goClient = builtClient({
  ...{ name: 'Go', language: 'go', compiler: 'go', program: 'drive' },
  version: { file: 'go.mod', pattern: /go-sdk v(\S+)/ },
  args: (output) => ['build', '-o', output, '.'],
});

export const rustClient = builtClient({
  ...{ name: 'Rust', language: 'rust', compiler: 'cargo', program: 'debug/interop-rust' },
  version: { file: 'Cargo.toml', pattern: /rmcp = \{ version = "=([^"]+)"/ },
  args: () => ['build', '--quiet', '--locked'],
  environment: (folder) => ({ CARGO_TARGET_DIR: folder }),
});
