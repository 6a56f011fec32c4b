// SPDX-License-Identifier: Apache-2.0
// A host made by the test: folders that resemble /sys, /proc and /dev. Where the kernel acts on a
// write, SysfsReaction does so behind a FIFO. Owned by the test, its thread.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "../netlink/network_namespace.hpp"
#include "api/os/descriptor.hpp"
#include "tests/unit/temporary_folder.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr::test {

namespace fs = std::filesystem;

inline PciAddress pci(std::string const& text) {
    return PciAddress::parse(text).value();
}

inline IpAddress ip(std::string const& text) {
    return IpAddress::parse(text).value();
}

// A function's configuration space with two capabilities: power management at 0x40, MSI-X at 0x70.
inline std::string configuration_with_msix(unsigned vectors) {
    std::string bytes(256, '\0');
    bytes[0x34] = 0x40;
    bytes[0x40] = 0x01;
    bytes[0x41] = 0x70;
    bytes[0x70] = 0x11;
    bytes[0x72] = static_cast<char>((vectors - 1) & 0xffU);
    bytes[0x73] = static_cast<char>((vectors - 1) >> 8U | 0x80U);  // enabled
    return bytes;
}

class HostTree {
  public:
    HostTree() {
        for (auto const* const folder : {"sys/bus/pci/devices", "sys/bus/pci/drivers",
                                         "sys/kernel/iommu_groups", "proc", "dev/vfio/devices"})
            fs::create_directories(root_ / folder);
    }
    [[nodiscard]] LinuxKernelRoots roots() const {
        return {root_ / "sys",  root_ / "proc",    root_ / "dev",
                root_ / "udev", root_ / "modules", root_ / "bin"};
    }
    [[nodiscard]] fs::path device(std::string const& address) const {
        return root_ / "sys/bus/pci/devices" / address;
    }
    void write(fs::path const& file, std::string const& text) const {
        fs::create_directories(file.parent_path());
        std::ofstream(file) << text;
    }
    [[nodiscard]] std::string read(fs::path const& file) const {
        std::stringstream text;
        text << std::ifstream(file).rdbuf();
        return text.str();
    }
    void link(fs::path const& at, fs::path const& target) const {
        fs::create_directories(at.parent_path());
        fs::remove(at);
        fs::create_symlink(target, at);
    }

    void add_device(std::string const& address) const {
        write(device(address) / "vendor", "0x8086\n");
        write(device(address) / "device", "0x10c9\n");
        write(device(address) / "class", "0x020000\n");
        write(device(address) / "numa_node", "-1\n");
        write(device(address) / "driver_override", "(null)\n");
    }
    void add_pf(std::string const& address, int total) const {
        add_device(address);
        write(device(address) / "sriov_totalvfs", std::to_string(total) + "\n");
        write(device(address) / "sriov_numvfs", "untouched");
        write(device(address) / "sriov_drivers_autoprobe", "1\n");
    }
    void add_vf(std::string const& pf, int index, std::string const& address) const {
        add_device(address);
        link(device(pf) / ("virtfn" + std::to_string(index)), fs::path("..") / address);
    }
    void put_in_group(std::string const& address, int group) const {
        auto const folder = root_ / "sys/kernel/iommu_groups" / std::to_string(group);
        fs::create_directories(folder / "devices");
        link(folder / "devices" / address, device(address));
        link(device(address) / "iommu_group", folder);
    }
    void add_driver(std::string const& name) const {
        fs::create_directories(root_ / "sys/bus/pci/drivers" / name);
    }
    void bind(std::string const& address, std::string const& driver) const {
        add_driver(driver);
        link(device(address) / "driver", root_ / "sys/bus/pci/drivers" / driver);
    }
    // A VFIO group that opens; as a device it is /dev/null, which every process may hold.
    void make_group_node(int group) const {
        link(root_ / "dev/vfio" / std::to_string(group), "/dev/null");
    }
    void add_process(int pid, std::string const& comm) const {
        fs::create_directories(root_ / "proc" / std::to_string(pid) / "fd");
        write(root_ / "proc" / std::to_string(pid) / "comm", comm + "\n");
    }
    void give_descriptor(int pid, int number, fs::path const& target) const {
        link(root_ / "proc" / std::to_string(pid) / "fd" / std::to_string(number), target);
    }

  private:
    TemporaryFolder folder_;
    fs::path const root_ = folder_.path();
};

// A file, and what the kernel does with data written to it. Writes in quick succession may arrive
// as one text.
struct Reaction {
    fs::path file;
    std::function<void(std::string const&)> act;
};

// Acts as the kernel for some files, in the order given when several were written; then makes an
// event, as the kernel does. Unlike with the kernel, a write returns before it is acted on. Start
// it inside the test's network namespace.
class SysfsReactions {
  public:
    explicit SysfsReactions(std::vector<Reaction> reactions) : reactions_(std::move(reactions)) {
        for (auto const& [file, act] : reactions_) {
            fs::remove(file);
            if (::mkfifo(file.c_str(), 0600) != 0) std::abort();
            // Opened for writing too: the FIFO then never loses what a writer left behind.
            fifos_.emplace_back(::open(file.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
        }
        if (::pipe2(end_.data(), O_CLOEXEC) != 0) std::abort();
        thread_ = std::thread([this] { serve(); });
    }
    SysfsReactions(SysfsReactions const&) = delete;
    SysfsReactions& operator=(SysfsReactions const&) = delete;
    ~SysfsReactions() {
        ::close(end_[1]);
        thread_.join();
        ::close(end_[0]);
    }

  private:
    void serve() {
        std::vector<int> fds{end_[0]};
        for (auto const& fifo : fifos_) fds.push_back(fifo.get());
        auto socket = NlSocket::open(NlProtocol::route).value();
        auto const loopback = get_netdev(socket, "lo", soon()).value();
        bool up = loopback.up;
        while (true) {
            EXPECT_EQ(await_readable(fds, Deadline::max()).value(), Readiness::readable);
            bool acted = false;
            for (std::size_t i = 0; i < fifos_.size(); ++i) acted |= act_on(i);
            if (!acted) return;  // only the end is readable
            up = !up;
            EXPECT_TRUE(change_netdev(socket, "lo", {loopback.ifindex, up, {}}, soon()));
        }
    }
    bool act_on(std::size_t i) const {
        std::array<char, 256> buffer{};
        auto const got = ::read(fifos_[i].get(), buffer.data(), buffer.size());
        if (got <= 0) return false;
        reactions_[i].act(std::string(buffer.data(), static_cast<std::size_t>(got)));
        return true;
    }

    std::vector<Reaction> reactions_;
    std::vector<FileDescriptor> fifos_;
    std::array<int, 2> end_{};
    std::thread thread_;
};

}  // namespace vfmgr::test
