import type { FoundProblem, ReadConfig } from '@gateway/core/config';
import type { SettingProblem } from '@gateway/core/errors';
import { jsonMembers } from '@gateway/core/json';

/** In the problem's origin and sentence, if its setting is in the file. */
export function withLine(
  { key, origin, sentence, places = [key] }: SettingProblem & Pick<FoundProblem, 'places'>,
  { file }: ReadConfig,
): SettingProblem {
  const members = file && origin === file.path ? jsonMembers(file.text) : [];
  const [line, ...more] = places.map(
    (place) => members.findLast(({ path }) => path === place)?.line,
  );
  if (line === undefined) return { key, origin, sentence };
  const lines = [line, ...more];
  const told = sentence.replaceAll(`(from ${origin})`, (from) =>
    lines.length > 0 ? `(from ${origin}:${lines.shift()})` : from,
  );
  return { key, origin: `${origin}:${line}`, sentence: told };
}
