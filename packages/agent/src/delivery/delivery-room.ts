import type { InFlightDelivery } from '../model/delivery.js';

/**
 * A project may use up to this multiple of the free capacity: 7/8 of the total for a single
 * project, 7/15 each for two.
 */
const PROJECT_SHARE = 7;
/**
 * An endpoint may use up to this multiple of the free capacity: 5/6 of the total for a single one.
 */
const ENDPOINT_SHARE = 5;
/**
 * A project is busy once it uses this multiple of the free capacity: 2/3 of the total for a single
 * project. The remainder leaves each endpoint capacity for the deliveries of a commit.
 */
const BUSY_SHARE = 2;
/**
 * Reserved for endpoints that respond promptly and for the first delivery of a project, which acts
 * as a probe.
 */
const RESERVED = 1 / 4;

interface DeliveryRoomOptions {
  readonly bytes: number;
  readonly deliveries: number;
}

/**
 * Limits of projects and endpoints shrink with the free capacity. Each delivery counts as at least
 * the byte limit divided by the delivery limit.
 */
export class DeliveryRoom {
  readonly #deliveries = new Map<string, InFlightDelivery>();
  readonly #used = new Map<string, number>();
  readonly #leastBytes: number;
  #bytes = 0;

  constructor(private readonly options: DeliveryRoomOptions) {
    this.#leastBytes = Math.max(1, Math.floor(options.bytes / options.deliveries));
  }

  /** In any project. 0 or less means none. */
  get left(): number {
    return this.#bytes >= this.options.bytes ? 0 : this.options.deliveries - this.#deliveries.size;
  }

  get size(): number {
    return this.#deliveries.size;
  }

  get(deliveryId: string): InFlightDelivery | undefined {
    return this.#deliveries.get(deliveryId);
  }

  /** Even beyond the share of the project or endpoint. Replaces a delivery with the same id. */
  add(delivery: InFlightDelivery): void {
    if (this.#deliveries.get(delivery.id) === delivery) return;
    this.remove(delivery.id);
    this.#deliveries.set(delivery.id, delivery);
    this.#count(delivery, 1);
  }

  remove(deliveryId: string): InFlightDelivery | undefined {
    const delivery = this.#deliveries.get(deliveryId);
    if (!delivery) return undefined;
    this.#deliveries.delete(deliveryId);
    this.#count(delivery, -1);
    return delivery;
  }

  /** Free bytes, including the reserve only if `answers` is true. 0 or less means none. */
  free(answers: boolean): number {
    return this.options.bytes * (answers ? 1 : 1 - RESERVED) - this.#bytes;
  }

  /**
   * The amount that the project may still add: nothing if `bytes` is 0 or less. A single delivery may exceed
   * it.
   */
  ofProject(
    projectId: string,
    answers: boolean,
  ): { readonly bytes: number; readonly deliveries: number } {
    const used = this.#used.get(projectId) ?? 0;
    // Each added byte also shrinks the free capacity, so this is the number of bytes at which the
    // project reaches its share.
    const bytes = (PROJECT_SHARE * this.free(answers) - used) / (PROJECT_SHARE + 1);
    if (bytes <= 0 && used === 0 && this.free(true) > 0) return { bytes: 1, deliveries: 1 };
    return { bytes, deliveries: Math.ceil(bytes / this.#leastBytes) };
  }

  /**
   * The project uses most of its share. Only projects with prompt endpoints reach this, because
   * only they may use the reserve.
   */
  isBusy(projectId: string): boolean {
    return (this.#used.get(projectId) ?? 0) >= BUSY_SHARE * this.free(true);
  }

  /** The shares of the project and the endpoint allow another delivery of any size. */
  has(
    { projectId, endpointId }: Pick<InFlightDelivery, 'projectId' | 'endpointId'>,
    answers: boolean,
  ): boolean {
    const used = this.#used.get(projectId) ?? 0;
    const free = this.free(answers || used === 0);
    return used < PROJECT_SHARE * free && (this.#used.get(endpointId) ?? 0) < ENDPOINT_SHARE * free;
  }

  #count({ projectId, endpointId, headers, body }: InFlightDelivery, sign: 1 | -1): void {
    let size = body.byteLength;
    for (const name in headers) size += name.length + headers[name]!.length;
    const bytes = sign * Math.max(this.#leastBytes, size);
    this.#bytes += bytes;
    this.#use(projectId, bytes);
    this.#use(endpointId, bytes);
  }

  #use(id: string, bytes: number): void {
    const used = (this.#used.get(id) ?? 0) + bytes;
    if (used > 0) this.#used.set(id, used);
    else this.#used.delete(id);
  }
}
