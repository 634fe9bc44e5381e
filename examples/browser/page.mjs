// The page: an official MCP client on `@throughline/client`. It shows each event as replayed or live, goes on over lost
// connections, and over its own reload.
import { Client } from '@modelcontextprotocol/client';
import { ResumableTransport } from '@throughline/client';

const STEPS = 30;
const INTERVAL_MS = 100;
const SHOWN = 'shown';

const byId = (id) => document.getElementById(id);

/**
 * The place of the client, for as long as this tab is open. `localStorage` would keep it longer, and share it: two tabs
 * must not go on in one session. Whoever can run scripts in this page can read it, and with it use the session.
 */
const store = {
  load: async (key) => sessionStorage.getItem(key) ?? undefined,
  save: async (key, text) => sessionStorage.setItem(key, text),
  remove: async (key) => sessionStorage.removeItem(key),
};

/** What was shown so far, over reloads. */
const shown = JSON.parse(sessionStorage.getItem(SHOWN) ?? '[]');

function show({ text, isReplayed }) {
  const kind = isReplayed ? 'replayed' : 'live';
  const item = document.createElement('li');
  item.className = kind;
  item.setAttribute('aria-label', `${kind}: ${text}`);
  const label = document.createElement('span');
  label.className = 'kind';
  label.textContent = kind;
  item.append(label, text);
  byId('events').append(item);
}

/** Called before the place is kept: if the page is gone in between, the event comes again, and is known by its id. */
function heard({ eventId, message, isReplayed }) {
  byId('connection').textContent = `connected, session ${transport.sessionId?.slice(0, 12)}…`;
  if (message.method !== 'notifications/message' || shown.some((event) => event.eventId === eventId)) return;
  const { step, of } = message.params.data;
  const event = { eventId, step, text: `step ${step} of ${of}`, isReplayed: isReplayed === true };
  shown.push(event);
  sessionStorage.setItem(SHOWN, JSON.stringify(shown));
  show(event);
}

function finish({ content }) {
  const isWhole = shown.length === STEPS && shown.every(({ step }, index) => step === index + 1);
  byId('outcome').textContent = `${content[0].text} ${isWhole ? 'Each came once, in order.' : 'Something is MISSING.'}`;
  byId('walk').disabled = false;
}

function failed(error) {
  byId('outcome').textContent = `failed: ${error.message}`;
  byId('walk').disabled = false;
}

byId('walk').addEventListener('click', () => {
  shown.length = 0;
  sessionStorage.removeItem(SHOWN);
  byId('events').replaceChildren();
  byId('outcome').textContent = '';
  byId('walk').disabled = true;
  const call = { name: 'walk', arguments: { steps: STEPS, intervalMs: INTERVAL_MS } };
  client.callTool(call, { timeout: 120_000 }).then(finish, failed);
});
byId('kill').addEventListener('click', () => fetch('/kill', { method: 'POST' }));
byId('reload').addEventListener('click', () => location.reload());

for (const event of shown) show(event);
const { url } = await (await fetch('/settings.json')).json();
const transport = new ResumableTransport(url, {
  store,
  onEvent: heard,
  // The call of the page as it was before its reload.
  onOrphanAnswer: ({ response }) => (response.result === undefined ? failed(response.error) : finish(response.result)),
  onSessionLost: ({ rejection }) => failed(rejection),
});
const client = new Client({ name: 'page', version: '1.0.0' });
client.onerror = () => {
  byId('connection').textContent = 'the connection is lost; reconnecting …';
};
await client.connect(transport);
byId('connection').textContent = `connected, session ${transport.sessionId?.slice(0, 12)}…`;
byId('walk').disabled = false;
