import { Type } from '@sinclair/typebox';
import { refuse } from './mount.js';

const Moment = Type.String({
  pattern: '^\\d{4}-\\d{2}-\\d{2}([T ]\\d{2}:\\d{2}(:\\d{2}(\\.\\d{1,9})?)?(Z|[+-]\\d{2}:?\\d{2})?)?$',
  'x-sentence': 'must be a date like 2026-11-21 or a time like 2026-11-21T09:00:00Z',
});

/** Limits a list to messages of this time. */
export const spanQuery = { startDate: Type.Optional(Moment), endDate: Type.Optional(Moment) } as const;

/** The span of a query. Times without a zone are UTC; a date alone as the end means the whole day. */
export function span({ startDate, endDate }: { startDate?: string; endDate?: string }): { from?: Date; to?: Date } {
  return {
    ...(startDate === undefined ? {} : { from: moment('startDate', startDate, 'T00:00:00.000Z') }),
    ...(endDate === undefined ? {} : { to: moment('endDate', endDate, 'T23:59:59.999Z') }),
  };
}

function moment(field: string, text: string, timeOfDate: string): Date {
  const zoned = /(Z|[+-]\d{2}:?\d{2})$/.test(text.slice(10)) ? text : `${text}Z`;
  const date = new Date(text.length === 10 ? text + timeOfDate : zoned.replace(' ', 'T'));
  if (Number.isNaN(date.getTime())) refuse([{ field, sentence: 'is not a date of the calendar' }]);
  return date;
}
