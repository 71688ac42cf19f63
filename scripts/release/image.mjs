// @ts-check
import fs from 'node:fs';
import path from 'node:path';
import { command, succeed } from '../prepare/command.mjs';
import { Problem } from '../prepare/problem.mjs';

const BASE = /^ARG BASE=(.*)$/m;

/**
 * Builds the image from the npm packages in `out` with buildah: an archive for `docker load` or
 * `podman load` per architecture. Another architecture than this machine's needs its emulator
 * (`qemu-user-static`).
 * @param {object} options
 * @param {string} options.root
 * @param {string} options.out
 * @param {string} options.version
 * @param {string | undefined} options.base instead of the base image in the Dockerfile, which is
 *   built from by the digest that it has now
 * @param {string | undefined} options.npmrc configures npm during the build
 * @returns {Promise<string[]>} the archives
 */
export async function buildImage({ root, out, version, base, npmrc }) {
  const from = base ?? (await pinned(/** @type {string} */ (BASE.exec(dockerfile(root))?.[1])));
  const revision = await command('git', ['rev-parse', 'HEAD'], { cwd: root });
  const archives = [];
  for (const architecture of ['amd64', 'arm64']) {
    const tag = `localhost/gateway:${version}-${architecture}`;
    const archive = path.join(out, `gateway-image-${version}-${architecture}.tar`);
    await succeed(
      'buildah',
      [
        'build',
        `--file=${fileOf(root)}`,
        `--tag=${tag}`,
        `--platform=linux/${architecture}`,
        // The OCI format has no health check.
        '--format=docker',
        `--build-arg=VERSION=${version}`,
        ...(revision.ok ? [`--build-arg=REVISION=${revision.output.trim()}`] : []),
        `--build-arg=BASE=${from}`,
        ...(npmrc ? [`--secret=id=npmrc,src=${path.resolve(npmrc)}`] : []),
        out,
      ],
      { cwd: root },
    );
    fs.rmSync(archive, { force: true });
    await succeed('buildah', ['push', tag, `docker-archive:${archive}:gateway:${version}`], {
      cwd: root,
    });
    archives.push(archive);
  }
  return archives;
}

/**
 * Writes the digest that the tag of the base image has now to the Dockerfile.
 * @param {string} root
 * @param {string} [base] another image than the one there
 */
export async function pinBase(root, base) {
  const text = dockerfile(root);
  const tag = base ?? BASE.exec(text)?.[1]?.replace(/@.*$/, '') ?? '';
  fs.writeFileSync(fileOf(root), text.replace(BASE, `ARG BASE=${await pinned(tag)}`));
}

/**
 * Returns an image with its digest, for which the registry is asked.
 * @param {string} image
 */
async function pinned(image) {
  if (image.includes('@sha256:')) return image;
  const inspect = ['inspect', '--format={{.Digest}}', `docker://${image}`];
  const { ok, output } = await command('skopeo', inspect, { cwd: '/' });
  const digest = output.trim();
  if (ok && /^sha256:[0-9a-f]{64}$/.test(digest)) return `${image}@${digest}`;
  throw new Problem(
    `The digest of the base image ${image} is not known: ${digest}\nInstall skopeo and reach the registry, or give --base <image>@sha256:<digest>.`,
  );
}

/** @param {string} root */
function fileOf(root) {
  return path.join(root, 'deploy/image/Dockerfile');
}

/** @param {string} root */
function dockerfile(root) {
  return fs.readFileSync(fileOf(root), 'utf8');
}
