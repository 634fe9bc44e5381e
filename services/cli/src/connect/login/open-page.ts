/** Opens a page in the person's browser, by whatever the system has for it. SPEC: CONNECT-LOGIN-OPEN. */
import { errorText } from '@throughline/log';

/** Never rejects: the address was shown as well. */
export async function openPage(url: URL, tell: (text: string) => void): Promise<void> {
  const failed = (error: unknown): void => {
    tell(`the browser could not be opened: ${errorText(error)}`);
  };
  try {
    const { default: open } = await import('open');
    (await open(url.href)).on('error', failed);
  } catch (error) {
    failed(error);
  }
}
