/** One package as it is installed elsewhere: JavaScript, declarations, its manifest. */
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import type { Manifest } from './published-manifest.ts';
import { publishedEntries, publishedManifest } from './published-manifest.ts';

export function readManifest(source: string): Manifest {
  return JSON.parse(readFileSync(path.join(source, 'package.json'), 'utf8')) as Manifest;
}

/**
 * Writes the package of the folder `source` to `target`, which is empty or not there. Throws where TypeScript cannot
 * write a declaration; types as such are checked by the gates.
 */
export function buildPackage(source: string, target: string, versions: ReadonlyMap<string, string>): void {
  const manifest = readManifest(source);
  const entries = [
    ...publishedEntries(manifest),
    // Threads are started by the place of their file, and imported by nobody; `imports` leads to what only a name does.
    ...globSync('src/**/*-worker.ts', { cwd: source }),
    ...namesOfFiles(manifest.imports ?? {}),
  ].map((file) => path.join(source, file));
  const program = ts.createProgram(entries, {
    target: ts.ScriptTarget.ES2024,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    customConditions: ['@throughline/source'],
    types: ['node'],
    strict: true,
    exactOptionalPropertyTypes: true,
    verbatimModuleSyntax: true,
    declaration: true,
    rewriteRelativeImportExtensions: true,
    noCheck: true,
    skipLibCheck: true,
    rootDir: path.join(source, 'src'),
    outDir: path.join(target, 'dist'),
  });
  const { diagnostics, emitSkipped } = program.emit();
  const faults = diagnostics.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
  if (emitSkipped || faults.length > 0) throw new Error(`${manifest.name} cannot be built: ${faults.join('\n')}`);
  mkdirSync(target, { recursive: true });
  writeFileSync(
    path.join(target, 'package.json'),
    `${JSON.stringify(publishedManifest(manifest, versions), null, 2)}\n`,
  );
  const readme = path.join(source, 'README.md');
  if (existsSync(readme)) copyFileSync(readme, path.join(target, 'README.md'));
}

function namesOfFiles(imports: object): string[] {
  return Object.values(imports).flatMap((target: string | object) =>
    typeof target === 'string' ? [target] : namesOfFiles(target),
  );
}
