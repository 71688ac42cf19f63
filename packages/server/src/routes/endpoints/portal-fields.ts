import type { InvalidField } from '@gateway/core/errors';
import { type ProjectCall, type TObject } from '../../api/vocabulary.js';

/** A portal link must not set another owner, nor fields whose `x-set-by` is `project`. */
export function portalProblems(
  { properties }: TObject,
  { ownerId, body }: Pick<ProjectCall, 'ownerId' | 'body'>,
): InvalidField[] {
  if (ownerId === undefined) return [];
  return Object.entries(body as Readonly<Record<string, unknown>>).flatMap(([field, given]) => {
    if (properties[field]?.['x-set-by'] !== 'project') return [];
    if (field !== 'owner_id')
      return [
        { field, sentence: 'is set by the project and not allowed over a portal link: omit it' },
      ];
    return given === ownerId ? [] : [{ field, sentence: 'is implied by the portal link: omit it' }];
  });
}
