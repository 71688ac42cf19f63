import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { cached } from './cached.js';
import { installed } from './packages.js';
import { Unavailable } from './unavailable.js';

export const KAFKA_VERSION = '4.1.1';
/** The last release of the previous major version, which many clusters still run. */
export const KAFKA_BEFORE = '3.9.1';

/**
 * Without a binding the broker logs nothing. Kafka 3.9 and 4.1 ship slf4j-api 1.7, to which 2.x
 * does not bind.
 */
const log = { groupId: 'org.slf4j', artifactId: 'slf4j-simple', version: '1.7.36' };

/**
 * Returns the folder with the broker's jars; Maven fills it on first use. Also ensures that Java is
 * installed.
 * @throws `Unavailable` without Java or Maven
 */
export function kafkaJars(version: string): string {
  needJava();
  return cached(path.join('gateway-kafka', version), (folder) => fetch(folder, version));
}

function needJava(): void {
  installed(
    'java',
    ['openjdk-17-jre-headless', 'openjdk-21-jre-headless', 'default-jre-headless'],
    'to run Kafka (17 or newer)',
  );
  const { stderr } = spawnSync('java', ['-version'], { encoding: 'utf8' });
  const version = Number(/version "(\d+)/.exec(stderr)?.[1]);
  if (!(version >= 17))
    throw new Unavailable(
      `Kafka needs Java 17 or newer, and the one on the PATH is ${version}: install openjdk-17-jre-headless`,
    );
}

function fetch(folder: string, version: string): void {
  installed('mvn', ['maven'], 'to fetch Kafka');
  process.stderr.write(`fetching Kafka ${version} (44 MB)\n`);
  fs.writeFileSync(path.join(folder, 'pom.xml'), pom(version));
  const args = [
    '-q',
    '-B',
    'dependency:copy-dependencies',
    '-DincludeScope=runtime',
    `-DoutputDirectory=${folder}`,
  ];
  const { status, stdout } = spawnSync('mvn', args, { cwd: folder, encoding: 'utf8' });
  if (status === 0) return;
  const said = stdout.trim().split('\n').slice(0, 3).join(' ');
  throw new Unavailable(
    `Kafka ${version} could not be fetched with Maven: ${said}; set TEST_KAFKA_BROKERS`,
  );
}

/** https://maven.apache.org/pom.html */
function pom(version: string): string {
  const kafka = { groupId: 'org.apache.kafka', artifactId: 'kafka_2.13', version };
  const dependencies = [kafka, log]
    .map((of) => `<dependency>${elements(of)}</dependency>`)
    .join('');
  const self = elements({ groupId: 'local', artifactId: 'kafka-jars', version: '1' });
  return `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>${self}<dependencies>${dependencies}</dependencies></project>\n`;
}

function elements(of: Record<string, string>): string {
  return Object.entries(of)
    .map(([name, text]) => `<${name}>${text}</${name}>`)
    .join('');
}
