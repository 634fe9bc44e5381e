/** Where a redirect leads that may be followed: the same request, to the same origin. Pure. SPEC: CLIENT-REDIRECT. */

/**
 * `null`: it is no redirect, or none that may be followed. Others than 307 and 308 turn a POST into a GET; another origin
 * would get the session id and the credentials. In browsers redirects cannot be seen, so there none is followed.
 */
export function redirectTarget(from: URL, answer: Pick<Response, 'status' | 'headers'>): URL | null {
  if (answer.status !== 307 && answer.status !== 308) return null;
  const location = answer.headers.get('location');
  const target = location === null ? null : URL.parse(location, from.href);
  if (target?.origin !== from.origin || target.username !== '' || target.password !== '') return null;
  target.hash = '';
  return target;
}
