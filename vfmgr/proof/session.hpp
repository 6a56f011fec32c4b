// SPDX-License-Identifier: Apache-2.0
// A verification as text for people. Pure.
#pragma once

#include <memory>
#include <string>

#include "api/types/test_lines.hpp"
#include "api/types/verification.hpp"
#include "vfmgr/proof/guest_stream.hpp"
#include "vfmgr/proof/measure.hpp"
#include "vfmgr/proof/reachability.hpp"
#include "vfmgr/rdma/device.hpp"
#include "vfmgr/rdma/faults.hpp"
#include "vfmgr/rdma/queue_pair.hpp"

namespace vfmgr::verify {

// Several lines, each with a newline: the verdict, then those of test_lines().
[[nodiscard]] std::string describe(Verification const& verification,
                                   Figures shown = Figures::important);

// How much memory can be registered in this VM: the largest MR, and the number of MRs of 4 KiB at
// once, up to 256. MPI and NCCL depend on it, and explain such failures late. One thread.

// Doubles the MR from 1 MiB on, and reads the host's message into its end over RDMA. At most half
// of the available memory (MemAvailable), and 256 MiB. Fails when one of these sizes does not work
// and the largest that does is below 64 MiB.
[[nodiscard]] Result<Measured> memory_regions(GuestStream& stream, Load const& load,
                                              Deadline deadline);

// The guest's end of one session: prepares a queue pair on the VF's RDMA device. Once the host has
// answered with an offer, runs the tests and writes the report. Owned by one thread.

struct Subject {
    GuestAttachment attachment;  // with a run
    std::string ifname;          // the VF's netdev
};
// Where its queue pairs are: at the VF's own address or port.
[[nodiscard]] EndpointOptions endpoint_options(Subject const& subject);

class GuestSession {
  public:
    // Returns an Error when the guest can't test at all: no RDMA device, no GID, no memory.
    [[nodiscard]] static Result<std::unique_ptr<GuestSession>> prepare(Subject subject);
    // The request for the host.
    [[nodiscard]] SessionRequest const& request() const { return request_; }
    // Never fails: errors are in the report. Runs `tests` on the host's streams after the proofs;
    // calls `on_test` after each test.
    using OnTest = std::function<void(TestResult const&)>;
    [[nodiscard]] GuestReport run(SessionOffer const& offer,
                                  std::vector<Measurement> const& tests = {},
                                  StreamHost const& host = {}, OnTest on_test = {});

  private:
    struct Rdma {
        Endpoint endpoint;
        QueuePair pair;
    };
    explicit GuestSession(Subject subject) : subject_(std::move(subject)) {}
    [[nodiscard]] Result<Rdma> open_rdma() const;
    [[nodiscard]] GuestReport begin_report() const;
    void add(GuestReport& report, Measured made);
    void add_kernels_reason(TestResult& failed);
    [[nodiscard]] bool prove(GuestReport& report, SessionOffer const& offer, Deadline deadline);

    Subject subject_;
    OnTest on_test_;
    SessionRequest request_;
    KernelLog log_;  // since run()
    std::optional<Rdma> rdma_;
};

}  // namespace vfmgr::verify
