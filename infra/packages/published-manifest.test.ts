import { describe, expect, it } from 'vitest';
import { publishedEntries, publishedManifest } from './published-manifest.ts';

const MANIFEST = {
  name: '@throughline/thing',
  version: '2.0.0',
  private: true,
  description: 'A thing.',
  license: 'Apache-2.0',
  type: 'module',
  exports: {
    '.': { '@throughline/source': './src/index.ts', default: './src/index.ts' },
    './node': { '@throughline/source': './src/node/index.ts', default: './src/node/index.ts' },
    './conformance': { '@throughline/source': './src/conformance/index.ts', default: './src/conformance/index.ts' },
  },
  imports: { '#digest': { node: './src/digest-node.ts', default: './src/digest.ts' } },
  dependencies: { '@throughline/other': '*', zod: '4.6.7' },
  devDependencies: { '@throughline/testkit': '*' },
};

describe('the manifest of a package outside of this repository', () => {
  it('[DOC-GUIDES] leads to what was built, names the siblings that it was built with, and nothing of this repository', () => {
    expect(publishedManifest(MANIFEST, new Map([['@throughline/other', '1.2.3']]))).toEqual({
      name: '@throughline/thing',
      version: '2.0.0',
      description: 'A thing.',
      license: 'Apache-2.0',
      type: 'module',
      engines: { node: '>=24' },
      exports: {
        '.': { types: './dist/index.d.ts', default: './dist/index.js' },
        './node': { types: './dist/node/index.d.ts', default: './dist/node/index.js' },
      },
      imports: { '#digest': { node: './dist/digest-node.js', default: './dist/digest.js' } },
      files: ['dist'],
      dependencies: { '@throughline/other': '1.2.3', zod: '4.6.7' },
    });
  });

  it('[DOC-GUIDES] is built from the entries that it leads to', () => {
    expect(publishedEntries(MANIFEST)).toEqual(['./src/index.ts', './src/node/index.ts']);
  });
});
