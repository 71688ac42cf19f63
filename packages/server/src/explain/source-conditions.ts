import { withTimeout } from '@gateway/core/process';
import { listSources, type ProjectRow } from '@gateway/store/config';
import { findReaders, type Readers } from '@gateway/store/deliveries';
import {
  readSourceStates,
  sourceCondition,
  TAKERS,
  whyUnreported,
  type Kv,
  type ReportedState,
  type SourceCondition,
} from '@gateway/store/kv';
import type { Database, Planes } from '@gateway/store/postgres';

const READ_MS = 1_000;
/** The newest of a project. */
export const SOURCES_MAX = 1_000;

interface NamedCondition extends SourceCondition {
  readonly id: string;
  readonly name: string;
  readonly reported: ReportedState | undefined;
}

export interface SourceConditions {
  readonly conditions: readonly NamedCondition[];
  readonly readers: Readers;
  readonly isKvAway: boolean;
}

/** Without KV, the states that it stores are unknown. */
export async function readConditions({
  database,
  planes: { data },
  kv,
  project,
}: {
  readonly database: Pick<Database, 'knex'>;
  /** The shard that takes the project's new events. */
  readonly planes: Pick<Planes, 'data'>;
  /** Undefined if it is in the memory of another process. */
  readonly kv: Kv | undefined;
  readonly project: Pick<ProjectRow, 'id'>;
}): Promise<SourceConditions> {
  const page = { perPage: SOURCES_MAX, sort: 'DESC', direction: 'next' } as const;
  const [{ content: rows }, readers] = await Promise.all([
    listSources(database.knex, project.id, {}, page),
    findReaders(data),
  ]);
  const sourceIds = rows.map(({ id }) => id);
  const agentIds = [TAKERS, ...readers.ids];
  const known =
    kv &&
    (await withTimeout(
      readSourceStates(kv, { projectId: project.id, sourceIds, agentIds }),
      READ_MS,
    ).catch(() => undefined));
  const absence = whyUnreported(readers, !known);
  const conditions = rows.map((row) => {
    const reported = known?.get(row.id);
    const { id, name } = row;
    return { id, name, reported, ...sourceCondition(row, reported, absence) };
  });
  return { conditions, readers, isKvAway: !known };
}
