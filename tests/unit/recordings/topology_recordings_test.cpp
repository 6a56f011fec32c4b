// SPDX-License-Identifier: Apache-2.0
// Hosts with GPUs and NICs as lspci, the kernel's log and sysfs recorded them: distance() returns
// for each pair what nvidia-smi printed there, or, where that was not recorded, what the numbers of
// the buses behind each bridge give. "compared" is followed by how many.
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "tests/unit/recordings/host_trees.hpp"
#include "tests/unit/recordings/recordings.hpp"
#include "tests/unit/temporary_folder.hpp"
#include "vfmgr/machine/collect.hpp"

namespace vfmgr::checks::recordings {
namespace {

using testing::ElementsAre;

PciAddress pci(std::string const& text) {
    return PciAddress::parse(text).value();
}
unsigned hexadecimal(std::string const& text) {
    return static_cast<unsigned>(std::stoul(text, nullptr, 16));
}

class TopologyRecordings : public Recordings {};

// --- nvidia-smi topo -m ---

// Words of a matrix by the names of its row and column: "GPU0", "NIC3".
using Matrix = std::map<std::pair<std::string, std::string>, std::string>;

Matrix matrix_in(std::string const& text) {
    Matrix matrix;
    std::vector<std::string> columns;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::vector<std::string> cells;
        for (std::string word; words >> word;) cells.push_back(word);
        if (cells.empty()) continue;
        if (cells.size() > 1 && cells[0] == "GPU0" && cells[1] == "GPU1") {
            std::erase_if(cells, [](auto const& cell) {
                return !cell.starts_with("NIC") && !(cell.starts_with("GPU") && cell.size() > 3);
            });
            columns = cells;
            continue;
        }
        if (std::ranges::find(columns, cells[0]) == columns.end()) continue;
        for (std::size_t n = 0; n < columns.size() && n + 1 < cells.size(); ++n)
            matrix[{cells[0], columns[n]}] = cells[n + 1];
    }
    return matrix;
}

std::string asus_matrix() {
    return content("07-gpu-topology/asus-epyc-nvidia-smi-topo-acs-grub.txt");
}

// lspci -tv draws the tree: what hangs below something is to its right, in this line or one further
// down. "+-01.1-[01]--+-00.0 NVIDIA …": function 01:00.0 behind the port 00:01.1.
std::vector<TreeFunction> drawn_tree(std::string const& drawing) {
    struct Drawn {
        std::size_t column;
        std::string path, bus;  // what is below it is on that bus
    };
    static std::regex const part(
        R"(\[([0-9a-f]{4}):([0-9a-f]{2})\]|\[([0-9a-f]{2})(?:-[0-9a-f]{2})?\])"
        R"(|([0-9a-f]{2}\.[0-7])(  .*)?)");
    std::vector<TreeFunction> tree;
    std::vector<Drawn> open;
    std::string domain;
    std::istringstream lines(drawing);
    for (std::string line; std::getline(lines, line);)
        for (std::sregex_iterator at(line.begin(), line.end(), part), end; at != end; ++at) {
            auto const column = static_cast<std::size_t>(at->position());
            while (!open.empty() && open.back().column >= column) open.pop_back();
            auto const above = open.empty() ? Drawn{} : open.back();
            if ((*at)[1].matched) {
                domain = (*at)[1];
                open.push_back({column, fmt::format("pci{}:{}", domain, (*at)[2].str()), (*at)[2]});
            } else if ((*at)[3].matched) {
                open.push_back({column, above.path, (*at)[3]});
            } else {
                auto const path =
                    fmt::format("{}/{}:{}:{}", above.path, domain, above.bus, (*at)[4].str());
                auto const name = (*at)[5].str();
                if (name.find("RTX") != name.npos) tree.push_back({path, 0x030000, -1});
                if (name.find("ConnectX") != name.npos) tree.push_back({path, 0x020000, -1});
                open.push_back({column, path, above.bus});
            }
        }
    return tree;
}

// "NUMA node: 0" below "01:00.0 VGA compatible controller: …", by slot: "01:00".
std::map<std::string, int> nodes_of_slots(std::string const& lspci) {
    static std::regex const function(R"(((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2})\.[0-7] .*)");
    std::map<std::string, int> nodes;
    std::string slot;
    std::istringstream lines(lspci);
    for (std::string line; std::getline(lines, line);) {
        std::smatch match;
        if (std::regex_match(line, match, function)) slot = match[1];
        if (auto const at = line.find("NUMA node: "); at != line.npos)
            nodes[slot] = std::stoi(line.substr(at + 11));
    }
    return nodes;
}

// Two sockets, and a host bridge for each slot. Its matrix counts NICs from mlx5_0 to mlx5_3, which
// is the order of their addresses, and GPUs in the order of nvidia-smi's table.
TEST_F(TopologyRecordings, AsusEpycHostIsAsItsMatrixSays) {
    auto const lspci = content("03-rdma-devlink-pci/asus-epyc-lspci-tv-and-vvv.txt");
    auto tree = drawn_tree(lspci.substr(0, lspci.find("## NUMA")));
    auto const nodes = nodes_of_slots(lspci);
    std::vector<std::string> gpus, nics;
    for (auto& one : tree) {
        auto const address = to_string(one.address());
        one.node = nodes.at(address.substr(5, 5));
        (one.class_code == 0x020000 ? nics : gpus).push_back(address);
    }
    auto const text = asus_matrix();
    static std::regex const in_table(R"(\| +0000([0-9A-F]{4}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-7]) )");
    std::vector<std::string> in_the_table;
    for (std::sregex_iterator at(text.begin(), text.end(), in_table), end; at != end; ++at)
        in_the_table.push_back(to_string(pci((*at)[1])));
    ASSERT_EQ(gpus, in_the_table);
    ASSERT_EQ(nics.size(), 4U);
    for (std::size_t n = 0; n < nics.size(); ++n)
        EXPECT_NE(text.find(fmt::format("NIC{0}: mlx5_{0}\n", n)), text.npos);

    Distances recorded;
    auto const matrix = matrix_in(text);
    EXPECT_EQ(matrix.size(), 64U);
    for (auto const& [names, word] : matrix) {
        auto const address = [&](std::string const& name) {
            auto const number = static_cast<std::size_t>(name.back() - '0');
            return pci((name.starts_with("GPU") ? gpus : nics).at(number));
        };
        EXPECT_EQ(word, matrix.at({names.second, names.first}));
        if (names.first == names.second) continue;
        auto const distance = enum_value<PciDistance>(word);
        ASSERT_TRUE(distance) << word;
        recorded[pair_of(address(names.first), address(names.second))] = *distance;
    }
    EXPECT_EQ(compared(host_of(tree), recorded),
              "GPU-NIC 8 NODE, 8 SYS; others 2 PIX, 2 NODE, 8 SYS");
}

// The words are nvidia-smi's own, in its own order: its legend begins with the farthest.
TEST_F(TopologyRecordings, WordsAreThoseOfNvidiaSmisLegend) {
    auto const text = asus_matrix();
    static std::regex const line(R"(\n  ([A-Z]+) += Connection traversing ([^\n]*))");
    std::vector<std::string> words;
    for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at) {
        words.push_back((*at)[1]);
        auto const distance = enum_value<PciDistance>(words.back());
        ASSERT_TRUE(distance) << words.back();
        EXPECT_EQ(static_cast<std::size_t>(*distance), words.size());
    }
    EXPECT_THAT(words, ElementsAre("SYS", "NODE", "PHB", "PXB", "PIX"));
}

// Matrices without NICs, of machines without a recorded tree: vfmgr has the same words.
TEST_F(TopologyRecordings, WordsOfOtherMatricesAreKnown) {
    auto const text = content("07-gpu-topology/nvidia-smi-topo-samples.txt");
    static std::regex const nvlink("NV[0-9]+");
    std::vector<std::size_t> sizes;
    std::map<std::string, int> words;
    for (std::size_t at = 0; (at = text.find("##### block", at)) != text.npos; ++at) {
        auto const matrix = matrix_in(text.substr(at, text.find("#####", at + 5) - at));
        sizes.push_back(matrix.size());
        for (auto const& [names, word] : matrix) {
            EXPECT_EQ(word, matrix.at({names.second, names.first}));
            EXPECT_EQ(word == "X", names.first == names.second);
            ++words[std::regex_replace(word, nvlink, "NV#")];
        }
    }
    EXPECT_THAT(sizes, ElementsAre(4U, 4U, 64U, 64U));
    EXPECT_EQ(words, (std::map<std::string, int>{{"NV#", 114}, {"PHB", 2}, {"X", 20}}));
    EXPECT_EQ(enum_value<PciDistance>("PHB"), PciDistance::phb);
}

// --- buses behind bridges ---

// GPUs and NICs, the bridges of their host, and the nodes of its root buses: "0000:15".
struct Wiring {
    std::vector<Bridge> bridges;
    std::vector<std::pair<PciAddress, unsigned>> functions;  // with their class
    std::map<std::string, int> nodes;

    [[nodiscard]] Root root_of(PciAddress const& function) const {
        auto const path = path_by_buses(bridges, function);
        auto const bus = path.substr(3, path.find('/') - 3);
        auto const node = nodes.find(bus);
        return {bus, node == nodes.end() ? -1 : node->second};
    }
    [[nodiscard]] std::string compare() const {
        std::vector<TreeFunction> tree;
        std::vector<PciAddress> addresses;
        for (auto const& [address, class_code] : functions) {
            tree.push_back({path_by_buses(bridges, address), class_code, root_of(address).node});
            addresses.push_back(address);
        }
        return compared(
            host_of(tree), distances(addresses, [&](auto const& a, auto const& b) {
                return below_bridges(bridges, a, b).value_or(above_bridges(root_of(a), root_of(b)));
            }));
    }
};

// Eight GPUs, each below one switch with a ConnectX-7, two of them also with the two ports of a
// ConnectX-6 Dx; and the board's two ports.
TEST_F(TopologyRecordings, HgxHostByLspcisBuses) {
    static std::regex const function(R"(([0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ([^:]*): .*)");
    static std::regex const buses(R"(.*secondary=([0-9a-f]{2}), subordinate=([0-9a-f]{2}),.*)");
    Wiring host;
    PciAddress at;
    std::istringstream lines(content("03-rdma-devlink-pci/lspci-vvv-hgx-server.txt.gz"));
    for (std::string line; std::getline(lines, line);) {
        std::smatch match;
        if (std::regex_match(line, match, function)) {
            at = pci("0000:" + match[1].str());
            if (match[2] == "3D controller") host.functions.emplace_back(at, 0x030200);
            if (match[2] == "Ethernet controller") host.functions.emplace_back(at, 0x020000);
        } else if (std::regex_match(line, match, buses)) {
            host.bridges.push_back({at, hexadecimal(match[1]), hexadecimal(match[2])});
        } else if (auto const node = line.find("NUMA node: "); node != line.npos) {
            host.nodes[fmt::format("{:04x}:{:02x}", at.domain, at.bus)] =
                std::stoi(line.substr(node + 11));
        }
    }
    EXPECT_EQ(host.functions.size(), 22U);
    EXPECT_EQ(host.compare(), "GPU-NIC 12 PIX, 44 NODE, 56 SYS; others 7 PIX, 48 NODE, 64 SYS");
}

// A host of this kind by the log of its boot. Its lines on most buses' nodes are lost.
TEST_F(TopologyRecordings, GpuHostByItsKernelLog) {
    static std::regex const bridge(
        R"(.* pci (\S+): PCI bridge to \[bus ([0-9a-f]{2})(?:-([0-9a-f]{2}))?\])");
    static std::regex const node(R"(.* pci_bus (\S+): on NUMA node (\d+))");
    static std::regex const gpu(R"(.*Initialized nvidia-drm \S+ \S+ for (\S+) on minor.*)");
    static std::regex const nic(R"(.* mlx5_core (\S+): firmware version: .*)");
    Wiring host;
    std::set<std::string> known;  // some bridges are listed twice
    std::istringstream lines(content("05-kernel-log/gpu-host-full-dmesg.txt.gz"));
    for (std::string line; std::getline(lines, line);) {
        std::smatch match;
        if (std::regex_match(line, match, bridge) && known.insert(match[1]).second)
            host.bridges.push_back({pci(match[1]), hexadecimal(match[2]),
                                    hexadecimal(match[match[3].matched ? 3 : 2])});
        else if (std::regex_match(line, match, node))
            host.nodes[match[1].str().substr(0, 7)] = std::stoi(match[2]);
        else if (std::regex_match(line, match, gpu))
            host.functions.emplace_back(pci(match[1]), 0x030200);
        else if (std::regex_match(line, match, nic))
            host.functions.emplace_back(pci(match[1]), 0x020000);
    }
    EXPECT_EQ(host.functions.size(), 20U);
    EXPECT_EQ(host.compare(), "GPU-NIC 12 PIX, 84 unknown; others 6 PIX, 88 unknown");
}

// --- trees of sysfs, collected and read like this machine's own ---

struct SysfsHost {
    Facts facts;
    Distances recorded;
};

std::string text_of(std::filesystem::path const& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
}

// Bridges' buses are in their headers' bytes: the tree's folders are not used for them.
SysfsHost sysfs_host(std::string const& name, std::string const& inner) {
    test::TemporaryFolder const unpacked;
    unpack("04-sysfs/" + name, unpacked.path());
    std::filesystem::path const root = unpacked.file(inner);
    std::vector<Bridge> bridges;
    std::vector<PciAddress> functions;
    std::map<PciAddress, Root> roots;
    for (auto const& folder : std::filesystem::recursive_directory_iterator(root / "sys/devices")) {
        auto const address = PciAddress::parse(folder.path().filename().string());
        if (!address || folder.is_symlink() || !exists(folder.path() / "class")) continue;
        auto const header = text_of(folder.path() / "config");
        auto const byte = [&](std::size_t at) { return static_cast<unsigned char>(header[at]); };
        if (header.size() >= 64 && (byte(0x0e) & 0x7fU) == 1)
            bridges.push_back({*address, byte(0x19), byte(0x1a)});
        auto const class_code = text_of(folder.path() / "class").substr(0, 4);
        bool const accelerator = class_code == "0x03" || class_code == "0x0b";
        auto const vendor = text_of(folder.path() / "vendor");
        // VGA of the board, and of a VM.
        bool const screen = vendor.starts_with("0x1a03") || vendor.starts_with("0x1af4");
        if (class_code != "0x02" && (!accelerator || screen)) continue;
        functions.push_back(*address);
        auto const way = folder.path().lexically_relative(root / "sys/devices").begin()->string();
        roots[*address] = {way, std::stoi(text_of(folder.path() / "numa_node"))};
    }
    return {collect({CheckedMachine::host, root}),
            distances(functions, [&](auto const& a, auto const& b) {
                return below_bridges(bridges, a, b).value_or(above_bridges(roots[a], roots[b]));
            })};
}

// Eight vector engines and two ConnectX below two switches, one host bridge each; and the board's
// two ports, below a host bridge of their own.
TEST_F(TopologyRecordings, CascadeLakeHostWithAcceleratorsBySysfs) {
    auto const host =
        sysfs_host("hwloc-cascadelake-two-pfs-totalvfs64.tar.gz", "32intel64-2p8co2t+8ve");
    EXPECT_EQ(compared(host.facts, host.recorded),
              "GPU-NIC 8 PIX, 24 NODE; others 13 PIX, 21 NODE");
}

// A coprocessor and a ConnectX-3 below two ports of one host bridge, the board's two ports below
// the other's.
TEST_F(TopologyRecordings, SandyBridgeHostWithCoprocessorBySysfs) {
    auto const host = sysfs_host("hwloc-sandybridge-mlx4-137pci.tar.gz", "32em64t-2n8c+1mic");
    EXPECT_EQ(compared(host.facts, host.recorded), "GPU-NIC 1 PHB, 2 SYS; others 1 PIX, 2 SYS");
}

// A VM: its GPU and its NIC, virtio's, below two root ports of the virtual tree.
TEST_F(TopologyRecordings, VmWithAnNvidiaGpuBySysfs) {
    auto const vm = sysfs_host("ghw-nvidia-accelerator.tar.gz", "");
    EXPECT_EQ(compared(vm.facts, vm.recorded), "GPU-NIC 1 PHB; others none");
}

// POWER9 with NVIDIA's GPUs, for which hwloc kept neither places nor nodes: they yield no distance.
TEST_F(TopologyRecordings, Power9GpusWithoutPlacesAreUnknown) {
    auto const facts =
        collected("04-sysfs/hwloc-power9-nvidia-gpu-numa.tar.gz", "nvidiagpunumanodes");
    std::vector<PciAddress> gpus;
    for (auto const* const address : {"0004:05:00.0", "0004:06:00.0", "0006:00:00.0",
                                      "0007:00:00.0", "0035:04:00.0", "0035:05:00.0"})
        gpus.push_back(pci(address));
    EXPECT_EQ(compared(facts, distances(gpus, [](auto const&,
                                                 auto const&) { return PciDistance::unknown; })),
              "GPU-NIC none; others 15 unknown");
}

}  // namespace
}  // namespace vfmgr::checks::recordings
