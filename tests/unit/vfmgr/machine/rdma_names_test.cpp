// SPDX-License-Identifier: Apache-2.0
// All names of an RDMA port in one row, for machines made up for these tests.
#include "vfmgr/machine/rdma_names.hpp"

#include <gtest/gtest.h>
#include <rdma/rdma_netlink.h>

#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "vfmgr/machine/rdma_ports.hpp"
#include "vfmgr/netlink/socket.hpp"

namespace vfmgr::checks {
namespace {

// Builds a machine's facts, one at a time.
class Built {
  public:
    Built() { facts.patterns = {"*"}; }
    Built& pci(std::string const& address, std::string const& device, std::string const& driver) {
        auto const folder = "/sys/bus/pci/devices/" + address;
        list("/sys/bus/pci/devices", address);
        file(folder + "/vendor", "0x15b3").file(folder + "/device", device);
        file(folder + "/class", "0x020000").file(folder + "/numa_node", "1");
        if (!driver.empty()) link(folder + "/driver", "../../../bus/pci/drivers/" + driver);
        return *this;
    }
    Built& vf(std::string const& pf, int index, std::string const& address) {
        link("/sys/bus/pci/devices/" + pf + "/virtfn" + std::to_string(index), "../" + address);
        return link("/sys/bus/pci/devices/" + address + "/physfn", "../" + pf);
    }
    Built& netdev(std::string const& name, std::string const& pci, std::string const& port) {
        auto const folder = "/sys/class/net/" + name;
        list("/sys/class/net", name);
        file(folder + "/flags", "0x1003").file(folder + "/mtu", "9000");
        if (!port.empty()) file(folder + "/phys_port_name", port);
        if (!pci.empty()) link(folder + "/device", "../../../" + pci);
        return *this;
    }
    Built& rdma(std::string const& name, std::string const& pci) {
        auto const folder = "/sys/class/infiniband/" + name;
        list("/sys/class/infiniband", name);
        file(folder + "/ports/1/state", "4: ACTIVE")
            .file(folder + "/ports/1/phys_state",
                  "5: "
                  "LinkUp");
        file(folder + "/ports/1/link_layer", "Ethernet");
        if (pci.empty()) return *this;
        file(folder + "/hca_type", "MT4125").file(folder + "/fw_ver", "22.40.1000");
        return link(folder + "/device", "../../../" + pci);
    }
    Built& gid(std::string const& port, int index, std::string const& gid, std::string const& dev) {
        auto const folder = "/sys/class/infiniband/" + port;
        auto const number = std::to_string(index);
        file(folder + "/gids/" + number, gid);
        file(folder + "/gid_attrs/types/" + number, "RoCE v2");
        return file(folder + "/gid_attrs/ndevs/" + number, dev);
    }
    Built& file(std::string const& path, std::string const& text) {
        facts.files[path] = {text + "\n", 0};
        return *this;
    }
    Built& link(std::string const& path, std::string const& target) {
        facts.links[path] = {target, 0};
        return *this;
    }
    Built& list(std::string const& folder, std::string const& name) {
        facts.folders[folder].names.push_back(name);
        return *this;
    }
    Built& says(std::string const& request, NlRequest const& answer) {
        auto const body = answer.body();
        facts.netlink[request].payloads.emplace_back(reinterpret_cast<char const*>(body.data()),
                                                     body.size());
        return *this;
    }
    [[nodiscard]] std::vector<RdmaName> names() const { return rdma_names(read_machine(facts)); }

    Facts facts;
};

NlRequest rdma_answer(std::uint32_t index, std::string const& name) {
    NlRequest answer(0, 0);
    answer.put(RDMA_NLDEV_ATTR_DEV_INDEX, index).put_text(RDMA_NLDEV_ATTR_DEV_NAME, name);
    return answer;
}

NlRequest port_answer(std::uint32_t port, std::string const& netdev) {
    NlRequest answer(0, 0);
    answer.put(RDMA_NLDEV_ATTR_PORT_INDEX, port).put_text(RDMA_NLDEV_ATTR_NDEV_NAME, netdev);
    return answer;
}

PciAddress at(std::string_view text) {
    return PciAddress::parse(text).value();
}

Built pf_with_two_vfs() {
    Built built;
    built.pci("0000:18:00.0", "0x101d", "mlx5_core").netdev("ens1f0np0", "0000:18:00.0", "p0");
    built.pci("0000:18:00.2", "0x101e", "mlx5_core").vf("0000:18:00.0", 0, "0000:18:00.2");
    built.pci("0000:18:00.3", "0x101e", "vfio-pci").vf("0000:18:00.0", 1, "0000:18:00.3");
    built.netdev("ens1f0v0", "0000:18:00.2", "").netdev("eth9", "0000:18:00.0", "pf0vf1");
    built.rdma("mlx5_0", "0000:18:00.0").rdma("mlx5_2", "0000:18:00.2");
    built.gid("mlx5_0/ports/1", 3, "0000:0000:0000:0000:0000:ffff:c0a8:6403", "ens1f0np0");
    return built;
}

TEST(RdmaNames, JoinPfsAndVfs) {
    auto const names = pf_with_two_vfs().names();
    ASSERT_EQ(names.size(), 3U);
    auto const& pf = names[0];
    EXPECT_EQ(pf.rdma_device, "mlx5_0");
    EXPECT_EQ(pf.kind, RdmaKind::nic);
    EXPECT_EQ(pf.ifname, "ens1f0np0") << "not its representor, which is in the same folder";
    EXPECT_EQ(pf.pci, at("0000:18:00.0"));
    EXPECT_EQ(pf.numa_node, 1);
    EXPECT_EQ(pf.phys_port_name, "p0");
    ASSERT_EQ(pf.gids.size(), 1U);
    EXPECT_EQ(pf.gids[0].address, IpAddress::parse("192.168.100.3").value());
    EXPECT_EQ(names[1].rdma_device, "mlx5_2");
    EXPECT_EQ(names[1].ifname, "ens1f0v0");
    EXPECT_EQ(names[1].vf, (VfId{at("0000:18:00.0"), 0}));
    auto const& attached = names[2];
    EXPECT_EQ(attached.kind, RdmaKind::none);
    EXPECT_EQ(attached.driver, "vfio-pci");
    EXPECT_EQ(attached.vf, (VfId{at("0000:18:00.0"), 1}));
    EXPECT_EQ(attached.represented_by, "eth9");
    EXPECT_EQ(attached.ifname, std::nullopt);
}

TEST(RdmaNames, ShowPfsWithoutAnRdmaDevice) {
    Built built;
    built.pci("0000:18:00.0", "0x101d", "mlx5_core").netdev("ens1f0np0", "0000:18:00.0", "p0");
    auto const names = built.names();
    ASSERT_EQ(names.size(), 1U);
    EXPECT_EQ(names[0].kind, RdmaKind::none);
    EXPECT_EQ(names[0].ifname, "ens1f0np0");
    EXPECT_EQ(names[0].state, std::nullopt);
}

// mlx5_bond_0: "after the two network ports are bonded, only one IB device is available".
TEST(RdmaNames, OfRoceLagAreOfBothPorts) {
    Built built;
    for (std::string const port : {"0", "1"}) {
        built.pci("0000:91:00." + port, "0x1017", "mlx5_core");
        built.netdev("ens9f" + port, "0000:91:00." + port, "p" + port);
        built.link("/sys/class/net/ens9f" + port + "/master", "../bond0");
    }
    built.netdev("bond0", "", "").rdma("mlx5_bond_0", "0000:91:00.0");
    built.gid("mlx5_bond_0/ports/1", 0, "fe80:0000:0000:0000:f61d:6bff:fe6f:4743", "bond0");
    built.says("RDMA_NLDEV_CMD_PORT_GET mlx5_bond_0", port_answer(1, "bond0"));
    auto const names = built.names();
    ASSERT_EQ(names.size(), 2U);
    for (auto const& name : names) {
        EXPECT_EQ(name.rdma_device, "mlx5_bond_0");
        EXPECT_EQ(name.master, "bond0");
        EXPECT_EQ(name.gids.size(), 1U);
    }
    EXPECT_EQ(names[0].ifname, "ens9f0");
    EXPECT_EQ(names[1].ifname, "ens9f1");
    EXPECT_EQ(names[1].pci, at("0000:91:00.1"));
    auto const gids = rdma_table(names, RdmaTable::gids);
    EXPECT_EQ(std::ranges::count(gids, '\n'), 2) << gids;
}

// "rdma link" in switchdev mode: port 2 of the PF's device is a VF's representor.
TEST(RdmaNames, OfRepresentorsSayWhomTheyStandFor) {
    auto built = pf_with_two_vfs();
    auto const folder = std::string("/sys/class/infiniband/mlx5_0/ports/2");
    built.file(folder + "/state", "4: ACTIVE").file(folder + "/link_layer", "Ethernet");
    built.says("RDMA_NLDEV_CMD_PORT_GET mlx5_0", port_answer(1, "ens1f0np0"));
    built.says("RDMA_NLDEV_CMD_PORT_GET mlx5_0", port_answer(2, "eth9"));
    auto const names = built.names();
    ASSERT_EQ(names.size(), 4U);
    EXPECT_EQ(names[1].port, 2);
    EXPECT_EQ(names[1].ifname, "eth9");
    EXPECT_EQ(names[1].represents, (VfId{at("0000:18:00.0"), 1}));
}

TEST(RdmaNames, OfSoftwareAreOfTheNetdevBeneath) {
    Built built;
    built.pci("0000:18:00.0", "0x101d", "mlx5_core").netdev("eth0", "0000:18:00.0", "");
    built.rdma("rxe0", "").file("/sys/class/infiniband/rxe0/parent", "eth0");
    built.file("/sys/class/infiniband/rxe0/ports/1/rate", "2.5 Gb/sec (1X SDR)");
    auto const names = built.names();
    ASSERT_EQ(names.size(), 2U) << "the NIC has no RDMA device of its own";
    EXPECT_EQ(names[0].kind, RdmaKind::none);
    EXPECT_EQ(names[1].kind, RdmaKind::software);
    EXPECT_EQ(names[1].ifname, "eth0");
    EXPECT_EQ(names[1].pci, at("0000:18:00.0"));
    EXPECT_EQ(rdma_table(names, RdmaTable::names).find("2.5 Gb"), std::string::npos)
        << "a rate of software is fiction";
}

// "2: smi1: node_type ca … type smi parent ibp8s0f1".
TEST(RdmaNames, OfSubDevicesSaySo) {
    auto built = pf_with_two_vfs();
    built.rdma("smi1", "0000:18:00.0");
    built.says("RDMA_NLDEV_CMD_GET", rdma_answer(0, "mlx5_0"));
    built.says("RDMA_NLDEV_CMD_GET", rdma_answer(7, "smi1").put_text(100, "mlx5_0"));
    auto const names = built.names();
    auto const found = std::ranges::find(names, "smi1", &RdmaName::rdma_device);
    ASSERT_NE(found, names.end());
    EXPECT_EQ(found->kind, RdmaKind::smi);
    EXPECT_EQ(found->ifname, std::nullopt);
    EXPECT_EQ(nic_ports(read_machine(built.facts)).size(), 2U);
}

// A ConnectX-3 is one function with two ports; dev_port tells their netdevs apart.
TEST(RdmaNames, OfTwoPortsOfOneFunction) {
    Built built;
    built.pci("0000:04:00.0", "0x1007", "mlx4_core").rdma("mlx4_0", "0000:04:00.0");
    built.netdev("ens2", "0000:04:00.0", "").netdev("ens2d1", "0000:04:00.0", "");
    built.file("/sys/class/net/ens2d1/dev_port", "1");
    built.file("/sys/class/infiniband/mlx4_0/ports/2/state", "1: DOWN");
    built.gid("mlx4_0/ports/1", 1, "fe80:0000:0000:0000:0000:0000:0000:0000", "");
    auto const names = built.names();
    ASSERT_EQ(names.size(), 2U);
    EXPECT_TRUE(names[0].gids.empty()) << "a free slot";
    EXPECT_EQ(names[0].ifname, "ens2");
    EXPECT_EQ(names[1].ifname, "ens2d1");
}

TEST(RdmaNames, RoundTripAsJson) {
    for (auto const& name : pf_with_two_vfs().names()) {
        nlohmann::json const document = name;
        auto const read = from_json_document<RdmaName>(document);
        ASSERT_TRUE(read) << read.error().detail;
        EXPECT_EQ(*read, name) << document.dump();
    }
}

TEST(RdmaTable, HasTheColumnsThatTheMachineNeeds) {
    EXPECT_EQ(rdma_table(pf_with_two_vfs().names(), RdmaTable::names),
              "RDMA      IFNAME          PCI           VF                      STATE   LINK      "
              "DRIVER     NUMA  TYPE    FIRMWARE\n"
              "mlx5_0/1  ens1f0np0 (up)  0000:18:00.0  -                       ACTIVE  ethernet  "
              "mlx5_core  1     MT4125  22.40.1000\n"
              "mlx5_2/1  ens1f0v0 (up)   0000:18:00.2  0000:18:00.0/0          ACTIVE  ethernet  "
              "mlx5_core  1     MT4125  22.40.1000\n"
              "-         -               0000:18:00.3  0000:18:00.0/1 by eth9  -       -         "
              "vfio-pci   1     -       -\n");
    EXPECT_EQ(rdma_table(pf_with_two_vfs().names(), RdmaTable::gids),
              "RDMA      INDEX  GID                                      ADDRESS        TYPE     "
              "IFNAME\n"
              "mlx5_0/1  3      0000:0000:0000:0000:0000:ffff:c0a8:6403  192.168.100.3  RoCE v2  "
              "ens1f0np0\n");
    EXPECT_EQ(rdma_table({}, RdmaTable::names), "no RDMA device and no NIC that could have one\n");
    EXPECT_EQ(rdma_table({}, RdmaTable::gids), "no RDMA port has a GID\n");
}

}  // namespace
}  // namespace vfmgr::checks
