// SPDX-License-Identifier: Apache-2.0
// Many events a second from the real daemon: VFs that another program changes. And a reader of the
// stream that counts what came.
import * as https from "node:https";
import type { IncomingMessage } from "node:http";
import type { Daemon, Json } from "../browser/daemon";

const WAVE_MS = 100;
// In turn, on and off: the daemon only counts a VF's drift in one setting that changes more than
// ten times a minute.
const SETTINGS: readonly (readonly [string, unknown, unknown])[] = [
  ["trust", false, true], ["spoofchk", true, false], ["link_state", "auto", "enable"],
  ["max_tx_rate_mbps", 0, 1000],
];

export interface VfPlace {
  pf: string;
  index: number;
}

// So that what differs on a free VF is drift.
export async function declareFreeVfs(daemon: Daemon, pfs: readonly string[],
                                     count: number): Promise<void> {
  const settings = Object.fromEntries(SETTINGS.map(([name, off]) => [name, off]));
  const free_vfs = Array.from({ length: count }, (_, index) => ({ index, settings }));
  await Promise.all(pfs.map(pf => daemon.do("PUT", `/v1/pfs/${pf}/spec`,
    { num_vfs: count, free_vfs })));
}

export class Changes {
  private made = 0;

  constructor(private readonly daemon: Daemon, private readonly vfs: readonly VfPlace[]) {}

  // Changes so many VFs a second, for so long, in waves.
  async come(perSecond: number, milliseconds: number): Promise<void> {
    const began = performance.now();
    const each = Math.round(perSecond * WAVE_MS / 1000);
    for (let wave = 0; wave * WAVE_MS < milliseconds; ++wave) {
      await until(began + wave * WAVE_MS);
      await Promise.all(Array.from({ length: each }, () => this.one()));
    }
    await until(began + milliseconds);
  }

  private one(): Promise<void> {
    const round = Math.floor(this.made / this.vfs.length);
    const { pf, index } = this.vfs[this.made % this.vfs.length]!;
    ++this.made;
    const [name, off, on] = SETTINGS[Math.floor(round / 2) % SETTINGS.length]!;
    const settings: Json = { [name]: round % 2 === 0 ? on : off };
    return this.daemon.happen({ change_vf: { pf, index, settings } });
  }
}

// Counts the events that the daemon sends from now on.
export class Reader {
  count = 0;
  private rest = "";

  private constructor(private readonly answer: IncomingMessage) {
    answer.setEncoding("utf8");
    answer.on("error", () => undefined); // end() is one
    answer.on("data", (part: string) => {
      const lines = (this.rest + part).split("\n");
      this.rest = lines.pop()!;
      this.count += lines.filter(line => line.startsWith("data:")).length;
    });
  }

  static async of(daemon: Daemon): Promise<Reader> {
    return new Promise((resolve, reject) => {
      const asked = https.get(`${daemon.url}/v1/events`, {
        rejectUnauthorized: false, agent: false,
        headers: { Authorization: `Bearer ${daemon.token}`, Accept: "text/event-stream" },
      }, answer => resolve(new Reader(answer)));
      asked.on("error", reject);
    });
  }

  end(): void {
    this.answer.destroy();
  }
}

export function until(at: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, Math.max(0, at - performance.now())));
}
