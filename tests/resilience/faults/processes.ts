/** Processes of a role in a world. */
import type { ThroughlineProcess } from '@throughline/testkit/processes';
import type { FaultWorld, Role } from '../world/fault-world.ts';

export function processesOf({ product }: FaultWorld, role: Role): readonly ThroughlineProcess[] {
  return role === 'gateway' ? product.gateways : product.workers;
}

export function startIn({ product }: FaultWorld, role: Role, place: number): Promise<ThroughlineProcess> {
  return role === 'gateway' ? product.startGateway(place) : product.startWorker(place);
}
