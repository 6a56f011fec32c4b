// SPDX-License-Identifier: Apache-2.0
// The parsed command line. Values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/http/http.hpp"
#include "api/types/test_lines.hpp"
#include "api/types/verification.hpp"
#include "guest-tools/net/enrolment.hpp"
#include "guest-tools/net/vf_report.hpp"
#include "guest-tools/traffic/receiver.hpp"
#include "guest-tools/traffic/sender.hpp"
#include "vfmgr/proof/measure.hpp"
#include "vfmgr/proof/serve/responder_server.hpp"

namespace vfmgr::guest::command {

enum class Output { text, json };

// A responder that another machine serves, in place of the host.
struct ServedOptions {
    std::string responder;  // empty: the host
    std::string fingerprint;
    std::string token_file;
    std::string address;
};

// What `doctor` and `rdma` print.
struct DoctorOptions {
    std::string from;     // a bundle; empty: this VM
    std::string symptom;  // empty: everything
    bool all = false;
    bool gids = false;
};

// What `peermem` does.
struct PeermemOptions {
    bool explain = false;
    std::string from;                          // a bundle, for explain; empty: this machine
    std::optional<std::chrono::seconds> wait;  // absent: does not wait
    bool despite_dma_buf = false;
    bool at_boot = false, not_at_boot = false;
};

// What `gpu test` tests, and where `gpu topology` writes.
struct GpuOptions {
    std::string pci;                     // empty: the GPU that is nearest to a NIC
    std::optional<std::uint64_t> bytes;  // of the checked buffer; absent: 1 GiB, or what fits
    unsigned rounds = 200;
    std::string topology_file;  // empty: prints what is known
    bool measures = false;      // `gpu topology`
};

// What `stream receive` and `stream send` do; addresses as they were typed.
struct StreamOptions {
    std::string local;  // for send: empty if the kernel chooses
    std::string to;
    stream::Memory memory = stream::Memory::host;  // of the receiver's ring
    std::string gpu;  // empty: the GPU nearest to the NIC that receives
    stream::ReceiveOptions receive;
    stream::SendOptions send;
};

struct Options {
    http::VsockTarget host{.cid = 2, .port = 8471, .source = http::SourcePort::privileged};
    Enrolments enrolments{};
    std::string state_folder = "/run/vf-guest";
    std::string report_folder = "/var/lib/vf-guest/reports";
    std::string metrics_file;  // empty: none
    std::string attachment;    // empty: all
    bool watch = false;        // up: keeps running
    bool at_once = false;
    Output output = Output::text;
    Figures figures = Figures::important;  // of verify and report, as text
    verify::Selection selection;           // what `verify` measures after the proofs
    ServedOptions served;
    DoctorOptions doctor;
    PeermemOptions peermem;
    GpuOptions gpu;
    StreamOptions stream;
    std::string bundle_file;  // empty: none
    serve::ServeOptions serving;
    std::vector<std::string> words;  // of a command that vf-guest starts itself
};

[[nodiscard]] inline Records records_of(Options const& options) {
    return {ReportFolder(options.report_folder), StateFolder(options.state_folder),
            options.metrics_file};
}

}  // namespace vfmgr::guest::command
