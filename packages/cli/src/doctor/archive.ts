import { existsSync } from 'node:fs';
import { withArchive } from '../app/stores.js';
import {
  failedBy,
  ok,
  skipped,
  warning,
  type DoctorContext,
  type DoctorResult,
} from './finding.js';

/**
 * Writes, reads and lists as agents and `gateway archive` do. Fails with the first of these that
 * the store refuses.
 */
export async function checkArchive({ config }: DoctorContext): Promise<DoctorResult> {
  const { url } = config.archive;
  if (url === undefined)
    return skipped('archive.url is not set, so retention deletes events without a copy');
  // Writing would create the folder: as another user than the agents, or where no disk is mounted.
  if (!url.startsWith('s3://') && !existsSync(url))
    return warning(
      `there is no folder ${url}`,
      'mount it, or create it so that the user of the agents may write to it; agents on this machine create it when the first day expires',
    );
  return withArchive(config, async ({ place, probes }) => {
    for (const [step, work] of Object.entries(probes)) {
      try {
        await work();
      } catch (error) {
        const { sentence, ...found } = failedBy(error);
        return { ...found, sentence: `${step}: ${sentence}` };
      }
    }
    return ok(`${place} can be written, read and listed`);
  });
}
