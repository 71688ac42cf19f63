import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { openApiDocument, type Schema } from '@gateway/server/openapi';
import { routes } from '@gateway/server/routes';

/** The API document of a server without a root path. */
export const description = openApiDocument(routes, { version: '0.1.0', rootPath: '' });

const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
ajv.addSchema({ $id: 'document', ...description });
const validators = new Map<string, ValidateFunction>();
const operations = Object.entries(description.paths).flatMap(([path, methods]) =>
  Object.keys(methods).map((method) => ({
    method,
    path,
    pattern: new RegExp(`^/api/v1${path.replaceAll(/\{\w+\}/g, '[^/]+')}/?$`),
  })),
);

/**
 * Names the parts of a response that the document does not describe; undefined if there are none,
 * or if the path is outside the API.
 */
export function undescribed(
  method: string,
  path: string,
  status: number,
  body: unknown,
): string | undefined {
  // A path like `/events/batch` matches a path with a parameter, which has other methods.
  if (status === 405) return undefined;
  const operation = operations
    .filter((it) => it.method === method.toLowerCase() && it.pattern.test(path))
    .sort((one, other) => one.path.split('{').length - other.path.split('{').length)[0];
  if (!operation) return undefined;
  const pointer = `#/paths/${encodeURIComponent(operation.path.replaceAll('/', '~1'))}/${operation.method}/responses/${status}`;
  const answer = description.paths[operation.path]![operation.method]!.responses[status] as
    Schema | undefined;
  if (!answer) return `${method} ${operation.path} answered ${status}, which is not described`;
  let validate = validators.get(pointer);
  if (!validate) {
    const place = (answer['$ref'] as string | undefined) ?? pointer;
    validators.set(
      pointer,
      (validate = ajv.compile({ $ref: `document${place}/content/application~1json/schema` })),
    );
  }
  if (validate(body)) return undefined;
  const problems = validate.errors!.map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
  return `${method} ${operation.path} answered ${status} in another shape: ${problems.slice(0, 5).join('; ')}`;
}
