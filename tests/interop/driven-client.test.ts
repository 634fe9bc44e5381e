import process from 'node:process';
import { waitUntil } from '@throughline/testkit/processes';
import { expect, it } from 'vitest';
import { connectDriven } from './driven-client.ts';
import type { Driver } from './driven-client.ts';

/** A driver in a few lines: each request runs `body`, which has `asked` and `say`. */
function driver(body: string): Driver {
  const program = `
    const say = (what) => process.stdout.write(JSON.stringify(what) + '\\n');
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const asked = JSON.parse(line);
      if (asked.do === 'connect') return say({ id: asked.id, ok: { text: '' } });
      ${body}
    });`;
  return { file: process.execPath, args: ['-e', program] };
}

it('[INTEROP-DRIVERS] a call through a driver gives each step and the result, also steps that come after it', async () => {
  const told = driver(`
    say({ id: asked.id, progress: 1 });
    say({ id: asked.id, ok: { text: asked.tool + ' ' + asked.arguments.from } });
    say({ id: asked.id, progress: 2 });`);
  await using session = await connectDriven(told, 'http://127.0.0.1/mcp');
  const steps: number[] = [];
  expect(await session.callTool('countdown', { from: 2 }, (step) => steps.push(step))).toBe('countdown 2');
  await waitUntil('the late step', () => steps.length === 2);
  expect(steps).toEqual([1, 2]);
}, 30_000);

it('[INTEROP-DRIVERS] an error of the client comes with its code and data, and one driver serves many calls', async () => {
  const refusing = driver(`say({ id: asked.id, error: { text: 'no', code: -32001, data: { reason: 'gap' } } });`);
  await using session = await connectDriven(refusing, 'http://127.0.0.1/mcp');
  for (const tool of ['one', 'two'])
    await expect(session.callTool(tool, {})).rejects.toMatchObject({
      message: 'no',
      code: -32001,
      data: { reason: 'gap' },
    });
}, 30_000);

it('[INTEROP-DRIVERS] a driver that ends fails the calls that wait, with what it wrote', async () => {
  const dying = driver(`process.stderr.write('out of luck'); process.exitCode = 3; process.stdin.destroy();`);
  await using session = await connectDriven(dying, 'http://127.0.0.1/mcp');
  await expect(session.callTool('x', {})).rejects.toThrow(/the driver ended \(3\).*out of luck/);
}, 30_000);

it('[INTEROP-DRIVERS] a driver that is not there is told at once', async () => {
  await expect(connectDriven({ file: '/nowhere/driver', args: [] }, 'http://127.0.0.1/mcp')).rejects.toThrow('ENOENT');
});
