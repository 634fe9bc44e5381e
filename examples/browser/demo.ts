/** Serves the page until it is told to stop. */
import { once } from 'node:events';
import process from 'node:process';
import { say } from '../story/tell-story.ts';
import { startBrowserStory } from './start-story.ts';

say('Starting two gateways and a worker on one log file, behind one address …');
await using story = await startBrowserStory((pid) => {
  say(`kill -9 ${pid}: the gateway that served the page; the other one serves it now`);
});
say(`\nOpen ${story.pageUrl}`);
say('Call the tool, kill the gateway or reload the page in the middle, and see what was replayed and what is live.');
say('Ctrl-C ends it.');
await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]);
