import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { bundle, readManifest, workspaceVersions } from './bundle.ts';

describe('the package', () => {
  it('[CLI-PACK] declares exactly the npm packages that it imports, in the versions of the workspace', async () => {
    const outdir = mkdtempSync(path.join(tmpdir(), 'throughline-bundle-'));
    try {
      const { imported, inlined } = await bundle(outdir);
      const declared = readManifest('services/cli').dependencies ?? {};
      expect(inlined).toEqual([]);
      expect(Object.keys(declared).sort()).toEqual(imported);
      const versions = workspaceVersions();
      for (const [name, version] of Object.entries(declared))
        expect(`${name} ${version}`).toBe(`${name} ${versions.get(name) ?? version}`);
      expect(readdirSync(outdir)).toEqual(expect.arrayContaining(['main.js', 'demo-server.js', 'sqlite-worker.js']));
    } finally {
      rmSync(outdir, { recursive: true });
    }
  });
});
