// @ts-check
import fs from 'node:fs';

/**
 * Returns the command lines of a group's live processes, without zombies.
 * @param {number} group
 * @returns {string[]} empty where the system has no /proc and the group is gone
 */
export function processesOf(group) {
  if (!fs.existsSync('/proc/self/stat'))
    return send(group, 0) ? [`the process group ${group}`] : [];
  return fs
    .readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .filter((pid) => livesIn(pid, group))
    .map((pid) => read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim());
}

/**
 * @param {number} group
 */
export function killGroup(group) {
  send(group, 'SIGKILL');
}

/**
 * https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html: pid (comm) state ppid pgrp …, and
 * comm can contain any character.
 * @param {string} pid
 * @param {number} group
 */
function livesIn(pid, group) {
  const stat = read(`/proc/${pid}/stat`);
  const [state, , pgrp] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(pgrp) === group && state !== 'Z' && state !== 'X';
}

/** @param {string} file */
function read(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return ''; // the process has ended meanwhile
  }
}

/**
 * @param {number} group
 * @param {NodeJS.Signals | 0} signal
 */
function send(group, signal) {
  try {
    return process.kill(-group, signal);
  } catch {
    return false;
  }
}
