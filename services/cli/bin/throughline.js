#!/usr/bin/env node
/* Old syntax on purpose: this file must be understood by the Node versions that it refuses. */
'use strict';

var OLDEST = 24;
var major = Number(process.versions.node.split('.')[0]);

if (major < OLDEST) {
  process.stderr.write(
    'throughline: Node ' +
      process.versions.node +
      ' is too old: Node ' +
      OLDEST +
      ' or later is needed. ' +
      'Install it (https://nodejs.org, or: nvm install ' +
      OLDEST +
      '), or run without installing: ' +
      'npx -p node@' +
      OLDEST +
      ' -p throughline throughline serve\n'
  );
  process.exitCode = 2;
} else if (!require('node:fs').existsSync(require('node:path').join(__dirname, '../dist/main.js'))) {
  process.stderr.write(
    'throughline: this checkout is not built. Run npm start -- <command> at its root, or build it: npm run build\n'
  );
  process.exitCode = 2;
} else {
  require('../dist/main.js');
}
