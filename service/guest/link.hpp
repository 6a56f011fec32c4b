// SPDX-License-Identifier: Apache-2.0
// vfmgrd's end of vfmgr-guestd: pushes what VMs may do, answers what vfmgr-guestd asks, and asks it
// for interop clients. systemd keeps the socket and starts a vfmgr-guestd that has ended; this
// connects again. Any thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>

#include "service/guest/dialogue.hpp"
#include "service/guest/retries.hpp"

namespace vfmgr::guestd {

// What vfmgr-guestd asks vfmgrd. All may block for a while; vfmgr-guestd is not trusted, so each
// checks what it gets.
struct FrontHooks {
    // What VMs may do now, as it is published. Also called under a lock of the link.
    std::function<GuestVms()> vms;
    // Fails with not_found if no running VM is known to have this CID.
    std::function<Result<VmIdentity>(std::uint32_t cid)> identify;
    // Called before a change. Fails with not_found if this life of the VM is over by now.
    std::function<Result<void>(VmIdentity const&, std::uint32_t cid)> confirm;
    // Returns where the PCI functions attached to this VM are on this host.
    std::function<Result<HostTopology>(VmIdentity const&)> topology;
    // Afterwards vms() has the ticket's run and a permit for it.
    std::function<Result<void>(VmIdentity const&, RunTicket const&)> start_run;
    // Returns a key for the guest on TCP that shows this secret; vms() has it then.
    std::function<Result<GuestKey>(VmIdentity const&, std::string const& secret)> enrol;
    // Takes the verdict on a run, and adds what vfmgrd knows.
    std::function<void(Verification&)> verdict;
    // What has changed: connected or not, and why not.
    std::function<void(Result<void> const&)> report;
};

class Link {
  public:
    using Connect = std::function<Result<FileDescriptor>()>;
    // `connect` returns a connection to vfmgr-guestd's socket.
    Link(Connect connect, FrontHooks hooks, Clock const& clock);
    ~Link();
    Link(Link const&) = delete;
    Link& operator=(Link const&) = delete;

    // Before it, no function of the hooks is called.
    void start();
    // Something that vms() returns has changed, or may have. Returns at once.
    void changed();
    // Whether the vf-guest of that guest_key() waits for work, or did a moment ago.
    [[nodiscard]] bool guest_waits(std::string const& guest) const;
    // Returns the SHA-256 of the certificate by which guests on TCP know the host. Fails with
    // unavailable while vfmgr-guestd has none.
    [[nodiscard]] Result<std::string> fingerprint() const;
    // Absent: vfmgr-guestd does not answer. Blocks for at most two seconds.
    [[nodiscard]] std::optional<Load> load();

    // `done` is called on another thread, once.
    using Done = std::function<void(Result<Answer>)>;
    void ask(Request request, Done done);

  private:
    struct Waited {
        VmIdentity vm;
        Deadline at{};
    };

    void run();
    [[nodiscard]] Result<void> serve_one();
    [[nodiscard]] Result<void> await_greeting();
    void push_until_ended();
    void push();
    void forget_stopped(GuestVms const& now);
    [[nodiscard]] Result<Answer> answer(Request const& request);
    [[nodiscard]] bool take(Message const& message);
    [[nodiscard]] Result<Answer> ask_now(Request request, std::chrono::seconds patience);

    Connect const connect_;
    FrontHooks const hooks_;
    Clock const& clock_;

    std::mutex pushing_;            // orders pushes, and guards the three members below
    std::optional<GuestVms> sent_;  // on this connection
    std::string instance_;          // of the last vfmgr-guestd
    Retries retries_;

    std::shared_mutex using_;  // held shared by who uses the dialogue, and alone by who replaces it
    std::unique_ptr<Dialogue> dialogue_;  // null: not connected

    mutable std::mutex mutex_;  // guards the members below
    std::condition_variable changed_;
    std::optional<Greeting> greeting_;      // on this connection
    std::map<std::string, Waited> waited_;  // by UUID: the start of that VM's last wait
    bool push_ = false;
    bool ended_ = false;  // the connection
    bool stopping_ = false;
    RequestThreads asking_;
    std::thread thread_;
};

}  // namespace vfmgr::guestd
