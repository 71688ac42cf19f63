import type { InvalidField } from '@gateway/core/errors';
import { compileFilter } from '@gateway/core/events';
import { described, object, string, Type, Word, type Static } from '../../api/vocabulary.js';

const Part = Type.Record(string(), Type.Unknown(), { maxProperties: 100 });
export const EventTypes = Type.Optional(
  Type.Array(Word, {
    minItems: 1,
    maxItems: 200,
    description:
      '`*` is every type but those of operational events, `order.*` every one that begins with `order.`.',
  }),
);
export const Filter = object({
  headers: Type.Optional(Part),
  body: Type.Optional(Part),
  message: Type.Optional(
    described(Part, 'On the message of the event, such as `key`, `topic` or `attributes`.'),
  ),
});

/** @param place the path of the list in the body */
export function patternProblems(patterns: readonly string[] = [], place: string): InvalidField[] {
  return patterns.flatMap((pattern, index) =>
    pattern.replace(/(^|\.)\*$/, '').includes('*')
      ? [
          {
            field: `${place}.${index}`,
            sentence: 'may have * alone or at the end after a dot, as in order.*',
          },
        ]
      : [],
  );
}

/** @param place the path of the filter in the body */
export function filterProblems(filter: Static<typeof Filter>, place: string): InvalidField[] {
  return (['headers', 'body', 'message'] as const).flatMap((part) => {
    try {
      compileFilter(filter[part] ?? {});
      return [];
    } catch (error) {
      return [{ field: `${place}.${part}`, sentence: (error as Error).message }];
    }
  });
}
