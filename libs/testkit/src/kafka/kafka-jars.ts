/** Kafka's jars from Maven Central, once a version, in a folder of the user's cache. No container, no installation. */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

/** Of the brokers that tests start; `KAFKA_VERSION` names another. */
export const KAFKA_VERSION = process.env['KAFKA_VERSION'] ?? '4.4.0';

const POM = fileURLToPath(new URL('../../../../infra/kafka/pom.xml', import.meta.url));
const DOWNLOAD_MS = 5 * 60_000;

/** Resolves with the folder of the jars. Needs `mvn` when they are not there yet. */
export async function findKafkaJars(version: string = KAFKA_VERSION): Promise<string> {
  const cache = path.join(process.env['XDG_CACHE_HOME'] ?? path.join(homedir(), '.cache'), 'throughline', 'kafka');
  const folder = path.join(cache, version);
  if (existsSync(path.join(folder, `kafka_2.13-${version}.jar`))) return folder;
  mkdirSync(cache, { recursive: true });
  const scratch = mkdtempSync(path.join(cache, 'download-'));
  try {
    await runMaven([
      ...['-q', '-B', '-f', POM, `-Dkafka.version=${version}`, 'dependency:copy-dependencies'],
      ...['-DincludeScope=runtime', `-DoutputDirectory=${scratch}`],
    ]);
    // At once and whole, whoever else downloads at the same time.
    if (!existsSync(folder)) renameSync(scratch, folder);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return folder;
}

function runMaven(args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn('mvn', args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: DOWNLOAD_MS });
    let said = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        said = (said + chunk.toString()).slice(-4000);
      });
    child.on('error', (error) => {
      reject(new Error(`mvn does not start: ${error.message}`));
    });
    child.on('exit', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`mvn could not bring Kafka's jars (code ${code}): ${said}`));
    });
  });
}
