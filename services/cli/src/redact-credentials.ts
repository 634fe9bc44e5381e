/** Texts of which nobody knows yet whether they are a URL, without the credentials that one may hold. SPEC: CLI-REDACT. */

/** User and password: what stands between the scheme and the last `@`, also where slashes or `@` in a password are not encoded. */
const USER_INFO = /([a-z][a-z0-9+.-]*:\/\/)[^\s"]*@/gi;
const QUERY = /([a-z][a-z0-9+.-]*:\/\/[^\s"?]*\?)[^\s"]*/gi;

/** Keeps everything else as it is. A query may hold keys, too. */
export function redactCredentials(text: string): string {
  return redactUserInfo(text).replace(QUERY, '$1<redacted>');
}

/** For settings that are shown so that they can be used again: their queries stay. */
export function redactUserInfo(text: string): string {
  return text.replace(USER_INFO, '$1<redacted>@');
}
