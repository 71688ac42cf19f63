import {
  int,
  named,
  nullable,
  object,
  oneOf,
  optional,
  string,
  Type,
} from '../../api/vocabulary.js';

/** As in `WholeMessage`. */
export const MessageOfEvent = named(
  'MessageOfEvent',
  nullable(
    object({
      key: nullable(
        string('The key by which the broker orders messages; the group of a message of SQS.'),
      ),
      timestamp: int('Time of the message, in milliseconds since 1970.'),
      ...optional({
        key_encoding: oneOf(['base64'], 'Present if the key is not UTF-8.'),
        topic: string(),
        partition: int(),
        offset: int(),
        attributes: Type.Record(string(), string(), {
          description: 'Attributes of the broker, by its names.',
        }),
        query: Type.Record(string(), string(), { description: 'Query of the request.' }),
        omitted: Type.Array(string(), {
          description: 'Names of the parts above that are larger than 16 KB, which are not stored.',
        }),
      }),
    }),
    'The message that the event was made of, except for its headers; null for an event created over the API.',
  ),
);
