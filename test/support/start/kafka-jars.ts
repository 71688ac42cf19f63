import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { installed } from './packages.js';
import { Unavailable } from './unavailable.js';

export const KAFKA_VERSION = '4.1.1';

const kafka = { groupId: 'org.apache.kafka', artifactId: 'kafka_2.13', version: KAFKA_VERSION };
/** Without a binding the broker's log is lost, and Kafka 4.1 brings slf4j-api 1.7, to which 2.x does not bind. */
const log = { groupId: 'org.slf4j', artifactId: 'slf4j-simple', version: '1.7.36' };

/**
 * The folder with the jars of the broker, filled by Maven when it is not yet there. Sees to it that Java is there too.
 * @throws `Unavailable` when Java or Maven cannot be had
 */
export function kafkaJars(): string {
  needJava();
  const cache = path.join(os.homedir(), '.cache', 'gateway-kafka');
  const folder = path.join(cache, kafka.version);
  if (!isComplete(folder)) fetch(cache, folder);
  return folder;
}

function needJava(): void {
  installed('java', ['openjdk-17-jre-headless', 'openjdk-21-jre-headless', 'default-jre-headless'], 'to run Kafka (17 or newer)');
  const { stderr } = spawnSync('java', ['-version'], { encoding: 'utf8' });
  const version = Number(/version "(\d+)/.exec(stderr)?.[1]);
  if (!(version >= 17))
    throw new Unavailable(`Kafka needs Java 17 or newer, and the one on the PATH is ${version}: install openjdk-17-jre-headless`);
}

/** Fills a folder beside the final one and renames it, so that a half-filled one is never used and two may fetch at once. */
function fetch(cache: string, folder: string): void {
  installed('mvn', ['maven'], 'to fetch Kafka');
  fs.mkdirSync(cache, { recursive: true });
  const filling = fs.mkdtempSync(`${folder}-`);
  process.stderr.write(`fetching Kafka ${kafka.version} into ${folder} (44 MB)\n`);
  fs.writeFileSync(path.join(filling, 'pom.xml'), pom());
  const args = ['-q', '-B', 'dependency:copy-dependencies', '-DincludeScope=runtime', `-DoutputDirectory=${filling}`];
  const { status, stdout } = spawnSync('mvn', args, { cwd: filling, encoding: 'utf8' });
  if (status !== 0) {
    fs.rmSync(filling, { recursive: true, force: true });
    const said = stdout.trim().split('\n').slice(0, 3).join(' ');
    throw new Unavailable(`Kafka ${kafka.version} could not be fetched with Maven into ${folder}: ${said}; set TEST_KAFKA_BROKERS`);
  }
  fs.writeFileSync(path.join(filling, '.complete'), '');
  if (isComplete(folder)) return fs.rmSync(filling, { recursive: true, force: true });
  fs.rmSync(folder, { recursive: true, force: true });
  fs.renameSync(filling, folder);
}

function isComplete(folder: string): boolean {
  return fs.existsSync(path.join(folder, '.complete'));
}

/** https://maven.apache.org/pom.html */
function pom(): string {
  const dependencies = [kafka, log].map((of) => `<dependency>${elements(of)}</dependency>`).join('');
  const self = elements({ groupId: 'local', artifactId: 'kafka-jars', version: '1' });
  return `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>${self}<dependencies>${dependencies}</dependencies></project>\n`;
}

function elements(of: Record<string, string>): string {
  return Object.entries(of)
    .map(([name, text]) => `<${name}>${text}</${name}>`)
    .join('');
}
