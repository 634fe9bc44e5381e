import process from 'node:process';
import { findChromium } from '@throughline/testkit/browser';
import { waitUntil } from '@throughline/testkit/processes';
import { chromium } from 'playwright-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startBrowserStory } from '../../examples/browser/start-story.ts';
import type { BrowserStory } from '../../examples/browser/start-story.ts';
import { showLogsOnFailure } from './show-logs.ts';

const found = await findChromium();
const isDeep = process.env['DEEP'] === '1';
const LONG_MS = 60_000;
const STEPS = 30;
const EXPECTED = Array.from({ length: STEPS }, (_, step) => `step ${step + 1} of ${STEPS}`);

describe.skipIf(found.from === 'none')('a page in Chromium', { timeout: 4 * LONG_MS }, () => {
  const resources = new AsyncDisposableStack();
  let story: BrowserStory;
  let browser: Browser;

  beforeAll(async () => {
    if (found.from === 'none') return;
    story = resources.use(await startBrowserStory());
    const env = { ...(process.env as Record<string, string>), ...found.environment };
    browser = await chromium.launch({ executablePath: found.executable, env, timeout: LONG_MS });
    resources.defer(() => browser.close());
  }, 3 * LONG_MS);
  afterAll(() => resources.disposeAsync(), LONG_MS);

  /** A page of its own, connected. */
  async function openPage(): Promise<Page> {
    showLogsOnFailure(story);
    const context = await browser.newContext();
    context.setDefaultTimeout(LONG_MS);
    onTestFinished(() => context.close());
    const page = await context.newPage();
    page.on('pageerror', (error) => process.stderr.write(`in the page: ${error.message}\n`));
    await page.goto(story.pageUrl);
    await page.getByRole('status', { name: 'Connection' }).getByText('connected, session').waitFor();
    return page;
  }

  /** The events as assistive technology is told them. */
  const eventsOf = (page: Page): Promise<(string | null)[]> =>
    page
      .getByRole('list', { name: 'Events' })
      .getByRole('listitem')
      .evaluateAll((items) => items.map((item) => item.getAttribute('aria-label')));
  const textsOf = (events: readonly (string | null)[]): string[] =>
    events.map((event) => event?.replace(/^(live|replayed): /, '') ?? '');
  const steps = (page: Page, count: number): Promise<unknown> =>
    waitUntil(`${count} steps`, async () => (await eventsOf(page)).length >= count, LONG_MS);
  const outcome = async (page: Page): Promise<string> => {
    const status = page.getByRole('status', { name: 'Outcome' });
    await waitUntil('the outcome', async () => (await status.textContent()) !== '', LONG_MS);
    return (await status.textContent()) ?? '';
  };
  const WHOLE = `${STEPS} steps are taken. Each came once, in order.`;

  it('[E2E-BROWSER] a gateway that is killed in mid-call costs no step and repeats none; what was missed is shown as replayed, the rest as live', async () => {
    const page = await openPage();
    await page.getByRole('button', { name: 'Call the tool' }).click();
    await steps(page, 5);
    await page.getByRole('button', { name: 'Kill the gateway' }).click();
    expect(await outcome(page)).toBe(WHOLE);
    const events = await eventsOf(page);
    expect(textsOf(events)).toEqual(EXPECTED);
    // Live before the kill, then what was missed, then live again.
    const kinds = events.map((event) => event?.split(':')[0]).join(' ');
    expect(kinds).toMatch(/^(live )+(replayed )+(live ?)+$/);
    // To the eye: by a word, by the line and by the colour.
    const looks = await page.locator('#events li').evaluateAll((items) =>
      items.map((item) => {
        const { borderLeftStyle, backgroundColor } = item.ownerDocument.defaultView!.getComputedStyle(item);
        return `${item.querySelector('.kind')?.textContent ?? ''} ${borderLeftStyle} ${backgroundColor}`;
      }),
    );
    expect(new Set(looks)).toEqual(new Set(['live solid rgb(238, 251, 241)', 'replayed dashed rgb(255, 246, 221)']));
  });

  it.runIf(isDeep)(
    '[E2E-BROWSER] a page that is reloaded in mid-call goes on in its session: each step once, in order, and the answer',
    async () => {
      const page = await openPage();
      const session = await page.getByRole('status', { name: 'Connection' }).textContent();
      await page.getByRole('button', { name: 'Call the tool' }).click();
      await steps(page, 5);
      await page.getByRole('button', { name: 'Reload the page' }).click();
      expect(await outcome(page)).toBe(WHOLE);
      expect(textsOf(await eventsOf(page))).toEqual(EXPECTED);
      expect(await page.getByRole('status', { name: 'Connection' }).textContent()).toBe(session);
    },
  );

  it.runIf(isDeep)('[E2E-BROWSER] a page that is reloaded while its gateway is killed goes on as well', async () => {
    const page = await openPage();
    await page.getByRole('button', { name: 'Call the tool' }).click();
    await steps(page, 5);
    const killed = story.killGateway();
    await page.getByRole('button', { name: 'Reload the page' }).click();
    expect(await outcome(page)).toBe(WHOLE);
    expect(textsOf(await eventsOf(page))).toEqual(EXPECTED);
    await killed;
  });

  it('[E2E-BROWSER] [GW-CORS] a page of another origin reads the headers that a resume is judged by, and sends the cursor', async () => {
    const page = await openPage();
    expect(new URL(story.mcpUrl).origin).not.toBe(new URL(story.pageUrl).origin);
    const read = await page.evaluate(async (url) => {
      const headers: Record<string, string> = {
        'Content-Type': 'application/json',
        Accept: 'application/json, text/event-stream',
      };
      const post = (message: object): Promise<Response> =>
        fetch(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', ...message }) });
      const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } };
      const first = await post({ id: 1, method: 'initialize', params });
      const cursor = /^id: ?(.+)$/m.exec(await first.text())?.[1] ?? '';
      headers['Mcp-Session-Id'] = first.headers.get('mcp-session-id') ?? '';
      headers['MCP-Protocol-Version'] = '2025-11-25';
      await post({ method: 'notifications/initialized' });
      const resumed = await fetch(url, { headers: { ...headers, 'Last-Event-ID': cursor } });
      const names = ['mcp-session-id', 'x-mcp-replay-epoch', 'x-mcp-replay-from'];
      return { cursor, status: resumed.status, seen: names.filter((name) => resumed.headers.get(name) !== null) };
    }, story.mcpUrl);
    expect(read).toEqual({
      cursor: expect.stringMatching(/^\w+\.\d+\.\d+\.r\d+/) as string,
      status: 200,
      seen: ['mcp-session-id', 'x-mcp-replay-epoch', 'x-mcp-replay-from'],
    });
  });
});
