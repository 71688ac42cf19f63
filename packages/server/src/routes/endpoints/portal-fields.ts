import type { InvalidField } from '@gateway/core/errors';
import type { ProjectCall } from '../../api/route.js';

/** The project limits the resources of an endpoint. */
const OF_THE_PROJECT = [
  'http_timeout',
  'concurrency',
  'strategy',
  'rate_limit',
  'rate_limit_duration',
];

/** A portal link can set neither another owner nor the project's limits. */
export function portalProblems({
  ownerId,
  body,
}: Pick<ProjectCall, 'ownerId' | 'body'>): InvalidField[] {
  if (ownerId === undefined) return [];
  const given = body as Readonly<Record<string, unknown>>;
  const ofProject = OF_THE_PROJECT.filter((field) => given[field] !== undefined);
  return [
    ...(given['owner_id'] === undefined || given['owner_id'] === ownerId
      ? []
      : [{ field: 'owner_id', sentence: 'is that of the portal link: leave it out' }]),
    ...ofProject.map((field) => ({
      field,
      sentence: 'is set by the project, not over a portal link: leave it out',
    })),
  ];
}
