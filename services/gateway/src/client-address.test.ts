import { describe, expect, it } from 'vitest';
import { addressGroup, clientAddress, isTrustable, trust } from './client-address.ts';
import { GatewayConfigSchema } from './config.ts';

const PROXIES = ['10.0.0.0/24', '192.0.2.7', 'fd00::/64', 'loopback'];

describe('the address of a client', () => {
  it.each<[string, readonly string[], string | undefined, string | undefined, string | null]>([
    ['without proxies is that of the peer', [], '198.51.100.1', undefined, '198.51.100.1'],
    ['without trust is that of the peer, whatever it says', [], '10.0.0.5', '198.51.100.1', '10.0.0.5'],
    ['of loopback is no exception', [], '127.0.0.1', '198.51.100.1', '127.0.0.1'],
    ['behind an untrusted peer is that of the peer', PROXIES, '10.0.1.5', '198.51.100.1', '10.0.1.5'],
    ['behind a trusted peer is what that wrote', PROXIES, '10.0.0.5', '198.51.100.1', '198.51.100.1'],
    ['behind this machine is what it wrote', PROXIES, '127.0.0.1', '198.51.100.1', '198.51.100.1'],
    ['behind ::1 is what it wrote', PROXIES, '::1', '198.51.100.1', '198.51.100.1'],
    ['is the rightmost that is not trusted', PROXIES, '10.0.0.5', '203.0.113.9, 198.51.100.1', '198.51.100.1'],
    ['lies before every trusted proxy', PROXIES, '10.0.0.5', '203.0.113.9,198.51.100.1,192.0.2.7', '198.51.100.1'],
    [
      'does not lie before an untrusted one',
      PROXIES,
      '10.0.0.5',
      '10.0.0.6, 198.51.100.1, 198.51.100.2',
      '198.51.100.2',
    ],
    ['is the leftmost if all are trusted', PROXIES, '10.0.0.5', '10.0.0.7, 10.0.0.6', '10.0.0.7'],
    ['of a silent proxy is its own', PROXIES, '10.0.0.5', undefined, '10.0.0.5'],
    ['of an empty header is the proxy', PROXIES, '10.0.0.5', '', '10.0.0.5'],
    ['that is none is the proxy', PROXIES, '10.0.0.5', 'unknown', '10.0.0.5'],
    ['that is a name is the proxy', PROXIES, '10.0.0.5', '203.0.113.9, evil.example', '10.0.0.5'],
    ['in octal is none', PROXIES, '10.0.0.5', '010.0.0.1', '10.0.0.5'],
    ['is read without its port', PROXIES, '10.0.0.5', '198.51.100.1:5678', '198.51.100.1'],
    ['of IPv6 is read without its port', PROXIES, '10.0.0.5', '[2001:db8::1]:5678', '2001:db8::1'],
    ['of IPv6 is read without brackets', PROXIES, '10.0.0.5', '[2001:db8::1]', '2001:db8::1'],
    ['of IPv6 has one spelling', PROXIES, 'fd00::5', '2001:DB8:0:0::1', '2001:db8::1'],
    ['of IPv6 has no zone', [], 'fe80::1%eth0', undefined, 'fe80::1'],
    ['of IPv4 inside IPv6 is that of IPv4', PROXIES, '::ffff:10.0.0.5', '::ffff:c633:6401', '198.51.100.1'],
    ['outside a range of IPv6 is that of the peer', PROXIES, 'fd00:0:0:1::5', '198.51.100.1', 'fd00:0:0:1::5'],
    ['of IPv4 is in no range of IPv6', ['::/1'], '198.51.100.1', '203.0.113.9', '198.51.100.1'],
    ['is trusted by a range inside IPv6', ['::ffff:10.0.0.0/120'], '10.0.0.5', '198.51.100.1', '198.51.100.1'],
    ['is not trusted outside of it', ['::ffff:10.0.0.0/120'], '10.0.1.5', '198.51.100.1', '10.0.1.5'],
    ['of a connection that is gone is not known', PROXIES, undefined, '198.51.100.1', null],
  ])('[GW-PROXY] %s', (_, trusted, peer, header, address) => {
    expect(clientAddress(peer, header, trust(trusted))).toBe(address);
  });
});

describe('what may be trusted', () => {
  it.each([
    '10.0.0.5',
    '10.0.0.0/24',
    '10.0.0.0/1',
    'fd00::5',
    'fd00::/64',
    '::1/128',
    '::ffff:10.0.0.0/104',
    'loopback',
  ])('[GW-PROXY-RANGE] %s', (entry) => {
    expect(isTrustable(entry)).toBe(true);
    expect(() => trust([entry])).not.toThrow();
  });

  it.each([
    '',
    'proxy.example',
    'localhost',
    '10.0.0',
    '10.0.0.0/33',
    '10.0.0.0/0',
    '0.0.0.0/0',
    '::/0',
    '::ffff:0.0.0.0/96',
    'fd00::/129',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0.0/255.0.0.0',
    '10.0.0.0/-1',
    '10.0.0.5:80',
    'fe80::1%eth0',
    'Loopback',
  ])('[GW-PROXY-RANGE] %j is refused by the configuration, which says what to write', (entry) => {
    const parsed = GatewayConfigSchema.shape.trustProxy.safeParse(['10.0.0.5', entry]);
    expect(parsed.error?.issues).toMatchObject([
      {
        path: [1],
        message: `must be addresses or ranges of proxies, such as 10.0.0.5,10.0.0.0/24,fd00::/64, or loopback; "${entry}" is none`,
      },
    ]);
    expect(() => trust([entry])).toThrow(TypeError);
  });
});

describe('one client', () => {
  it.each([
    ['198.51.100.1', '198.51.100.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
    ['2001:db8::6', '2001:db8:0:0::/64'],
    ['2001:db8:0:0:1::', '2001:db8:0:0::/64'],
    ['1::3:4:5:6:7', '1:0:0:3::/64'],
    ['::1', '0:0:0:0::/64'],
  ])('[AUTH-LIMIT-ADDRESS] %s is counted as %s', (address, group) => {
    expect(addressGroup(address)).toBe(group);
  });
});
