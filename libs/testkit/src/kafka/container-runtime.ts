/** Testcontainers on the engine that was found, and what it leaves behind when a run is killed. */
import { existsSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import process from 'node:process';
import { getContainerRuntimeClient, ImageName } from 'testcontainers';
import type { ContainerRuntimeClient } from 'testcontainers';
import { findDocker } from './find-docker.ts';

export type ContainerRuntime = ContainerRuntimeClient;
export type Container = ReturnType<ContainerRuntime['container']['getById']>;

const OWNER = 'throughline.owner';

let opening: Promise<ContainerRuntime | null> | undefined;

/** Null where no engine answers. What former runs left is removed first. */
export function openContainerRuntime(): Promise<ContainerRuntime | null> {
  opening ??= open();
  return opening;
}

async function open(): Promise<ContainerRuntime | null> {
  const host = await findDocker();
  if (host === null) return null;
  // Testcontainers reads them at its first use.
  process.env['DOCKER_HOST'] = host;
  if (host.startsWith('unix:')) process.env['TESTCONTAINERS_HOST_OVERRIDE'] ??= '127.0.0.1';
  const runtime = await getContainerRuntimeClient();
  await removeOrphans(runtime);
  return runtime;
}

/** Pulls the image if the engine does not have it. Rejects where no registry has it either. */
export async function ensureImage(runtime: ContainerRuntime, name: string): Promise<void> {
  await runtime.image.pull(ImageName.fromString(name), { force: false, platform: undefined });
}

/** Says whose a container or network is: this process, and when it began, since ids of processes are used again. */
export function ownerLabels(): Record<string, string> {
  return { [OWNER]: `${hostname()} ${process.pid} ${startOf(process.pid)}` };
}

/**
 * Removes containers and networks whose owner on this host is gone. Testcontainers' own way, a container (Ryuk) with
 * the engine's socket in it, needs an image that cannot be had everywhere.
 */
async function removeOrphans(runtime: ContainerRuntime): Promise<void> {
  const { dockerode } = runtime.container as unknown as { readonly dockerode: OrphanSource };
  const filters = { label: [OWNER] };
  for (const { Id, Labels } of await dockerode.listContainers({ all: true, filters }))
    if (isOrphan(Labels[OWNER])) await dockerode.getContainer(Id).remove({ force: true, v: true }).catch(ignoreGone);
  for (const { Id, Labels } of await dockerode.listNetworks({ filters }))
    if (isOrphan(Labels?.[OWNER])) await dockerode.getNetwork(Id).remove().catch(ignoreGone);
}

/** The part of dockerode, below Testcontainers, that lists. */
interface OrphanSource {
  listContainers(options: object): Promise<{ readonly Id: string; readonly Labels: Record<string, string> }[]>;
  listNetworks(options: object): Promise<{ readonly Id: string; readonly Labels?: Record<string, string> }[]>;
  getContainer(id: string): { remove(options: object): Promise<unknown> };
  getNetwork(id: string): { remove(): Promise<unknown> };
}

function isOrphan(owner: string | undefined): boolean {
  const [host, pid = '', began] = (owner ?? '').split(' ');
  return host === hostname() && startOf(Number(pid)) !== began;
}

/** In ticks since boot; empty for a process that is not there, and where there is no /proc. */
function startOf(pid: number): string {
  const file = `/proc/${pid}/stat`;
  if (!existsSync(file)) return '';
  try {
    // The name, in parentheses, may hold spaces.
    return (
      readFileSync(file, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ')[19] ?? ''
    );
  } catch {
    return '';
  }
}

/** Two runs may remove the same one. */
function ignoreGone(error: unknown): void {
  const status = (error as { readonly statusCode?: number }).statusCode;
  if (status !== 404 && status !== 409 && status !== 403) throw error;
}
