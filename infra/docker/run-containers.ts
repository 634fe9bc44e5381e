/**
 * `npm run containers -- start | stop`: a Docker engine with the images of tests and compose, without a registry if
 * need be. `start` prints what a shell needs: `eval "$(npm run -s containers -- start)"`.
 */
import process from 'node:process';
import { ensureEngine, stopPrivateEngine } from './engine.ts';
import { ensureImages, IMAGES } from './images.ts';

const USAGE = `Usage: npm run containers -- start | stop
A Docker engine with the images of tests and compose; start prints what a shell needs to use it.
`;

const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

switch (process.argv[2]) {
  case 'start': {
    const { host } = await ensureEngine(say);
    const names = await ensureImages(
      host,
      IMAGES.map(({ variable }) => variable),
      say,
    );
    for (const [name, value] of Object.entries({ DOCKER_HOST: host, ...names }))
      process.stdout.write(`export ${name}=${value}\n`);
    break;
  }
  case 'stop':
    await stopPrivateEngine();
    break;
  case '--help':
  case '-h':
    process.stdout.write(USAGE);
    break;
  default:
    say(USAGE.trimEnd());
    process.exitCode = 2;
}
