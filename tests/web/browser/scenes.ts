// SPDX-License-Identifier: Apache-2.0
// Hosts that the tests open the console for: as they are at first, and what is then done to them.
import verification from "../../../api/examples/verification.json";
import { Daemon } from "./daemon";
import type { Json } from "./daemon";

export const PFS = ["0000:01:00.0", "0000:41:00.0"] as const;
const NETWORK = {
  prefix: "192.168.100.0/24", mtu: 9000, rdma: "rxe",
  pfs: [{ pf: PFS[0], host_address: "192.168.100.1" }],
};

export const passed: Json = { ...verification, verdict: "pass", finished_at: null };

export function vm(number: number, part: Json = {}): Json {
  return {
    name: `vm${number}`, free_pcie_ports: 8,
    uuid: `${String(number).padStart(8, "0")}-1111-1111-1111-111111111111`, ...part,
  };
}

// Two NICs, and three VMs, one of which is off. The topology is that of the machine of the tests.
export const small: Json = {
  pfs: [
    { model: "igb", pci: PFS[0], ifname: "enp1s0", total_vfs: 7 },
    { model: "mlx5", pci: PFS[1], ifname: "enp65s0", total_vfs: 8 },
  ],
  vms: [vm(1), vm(2), vm(3, { runs: false })],
  gids: ["192.168.100.1", "127.0.0.1"],
  verdict: passed,
};

// With a network and VFs, of the small host or one like it.
export async function withVfs(host = small, clients: Record<string, string> = {}): Promise<Daemon> {
  const daemon = await Daemon.start(host, clients);
  await daemon.do("PUT", "/v1/networks/train", NETWORK);
  await daemon.do("PUT", `/v1/pfs/${PFS[0]}/spec`, { num_vfs: 7 });
  await daemon.do("PUT", `/v1/pfs/${PFS[1]}/spec`, { num_vfs: 4 });
  return daemon;
}

export async function attached(daemon: Daemon, name: string, more: Json = {}): Promise<string> {
  const ended = await daemon.do("POST", "/v1/attachments",
    { vm: name, network: "train", verify: "required", ...more });
  return ended!.subject!.split("/").at(-1)!;
}

// The small host with something in each state that a VF can be in.
export async function inEveryState(): Promise<Daemon> {
  const daemon = await withVfs();
  await attached(daemon, "vm1");
  await attached(daemon, "vm1", { verify: "none" });
  const third = await attached(daemon, "vm2");
  const { vf } = (await daemon.ask("GET", `/v1/attachments/${third}`)).body as
    { vf: { pf: string; index: number } };
  await daemon.happen({ change_vf: { ...vf, settings: { mac: "02:00:00:00:00:99" } } });
  const held = await daemon.ask("GET", `/v1/pfs/${PFS[0]}/vfs/4`);
  await daemon.happen({ hold: { pci: held.body!["pci"], pid: 4711, comm: "qemu" } });
  await daemon.happen({ stuck: { pf: PFS[1], why: "a write to sriov_numvfs hangs" } });
  return daemon;
}

const MANY = { pfs: 8, vfs: 120, vms: 120, attached: 30 };

// 8 PFs with 120 VFs each, 120 VMs, a quarter of which have a proved VF.
export async function large(): Promise<Daemon> {
  const pcis = Array.from({ length: MANY.pfs }, (_, at) =>
    `0000:${(0x10 + 8 * at).toString(16)}:00.0`);
  const daemon = await Daemon.start({
    pfs: pcis.map((pci, at) => ({
      model: "mlx5", pci, ifname: `enp${16 + 8 * at}s0`, total_vfs: MANY.vfs,
    })),
    vms: Array.from({ length: MANY.vms }, (_, at) => vm(at + 1)),
    gids: ["192.168.100.1", "127.0.0.1"],
    verdict: passed,
  });
  await daemon.do("PUT", "/v1/networks/train", { ...NETWORK,
    pfs: [{ pf: pcis[0], host_address: "192.168.100.1" }] });
  const spec = { num_vfs: MANY.vfs };
  await Promise.all(pcis.map(pci => daemon.do("PUT", `/v1/pfs/${pci}/spec`, spec)));
  for (let at = 1; at <= MANY.attached; ++at)
    await attached(daemon, `vm${at}`, { verify: "background" });
  return daemon;
}
