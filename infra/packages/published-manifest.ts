/** What a package says of itself outside of this repository, where there are no sources and no siblings. Pure. */

type Target = string | { readonly [condition: string]: Target };

export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly type: string;
  readonly sideEffects?: boolean;
  readonly exports: Readonly<Record<string, { readonly default: string }>>;
  readonly imports?: Readonly<Record<string, Target>>;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** Entries that need what only this repository has: the conformance suite runs in its test runner. */
const NOT_PUBLISHED: readonly string[] = ['./conformance'];
const NODE = '>=24';

/** The sources that lie behind the entries that are published, relative to the package. */
export function publishedEntries({ exports }: Manifest): string[] {
  return Object.entries(exports)
    .filter(([entry]) => !NOT_PUBLISHED.includes(entry))
    .map(([, target]) => target.default);
}

/** @param versions of the packages of this repository, by name: what was built together belongs together. */
export function publishedManifest(manifest: Manifest, versions: ReadonlyMap<string, string>): object {
  const { name, version, description, license, type, sideEffects, exports, imports, dependencies } = manifest;
  return {
    name,
    version,
    description,
    license,
    type,
    ...(sideEffects === undefined ? {} : { sideEffects }),
    engines: { node: NODE },
    exports: Object.fromEntries(
      Object.entries(exports)
        .filter(([entry]) => !NOT_PUBLISHED.includes(entry))
        .map(([entry, target]) => [
          entry,
          { types: built(target.default, '.d.ts'), default: built(target.default, '.js') },
        ]),
    ),
    ...(imports === undefined ? {} : { imports: eachTarget(imports, (file) => built(file, '.js')) }),
    files: ['dist'],
    dependencies: Object.fromEntries(
      Object.entries(dependencies ?? {}).map(([other, range]) => [other, versions.get(other) ?? range]),
    ),
  };
}

function built(source: string, extension: string): string {
  return source.replace(/^\.\/src\//, './dist/').replace(/\.ts$/, extension);
}

function eachTarget(targets: Readonly<Record<string, Target>>, change: (file: string) => string): object {
  return Object.fromEntries(
    Object.entries(targets).map(([key, target]) => [
      key,
      typeof target === 'string' ? change(target) : eachTarget(target, change),
    ]),
  );
}
