/** For vitest: what kind of cluster the files of a run can start. They take it by `inject('kafkaCluster')`. */
import type { TestProject } from 'vitest/node';
import type { ClusterKind } from './start-cluster.ts';
import { findClusterKind } from './start-cluster.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Not given outside of the cluster lane; `null` in it: there is neither Docker nor Java. */
    kafkaCluster: ClusterKind | null;
  }
}

/** The name is vitest's. */
export async function setup(project: TestProject): Promise<void> {
  project.provide('kafkaCluster', await findClusterKind());
}
