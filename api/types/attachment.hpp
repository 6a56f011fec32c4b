// SPDX-License-Identifier: Apache-2.0
// AttachmentSpec: a request to attach a VF to a VM. Attachment: the resulting attachment. Values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/time.hpp"
#include "api/types/topology.hpp"
#include "api/types/verification.hpp"
#include "api/types/vf.hpp"

namespace vfmgr {

// Where the device is attached. `auto`: the running VM and its persistent XML, whichever exist.
enum class Persistence { auto_, live, config };

// required: the attachment stands only after RDMA over it is proved; otherwise it is undone.
// background: verified when the guest reports; the attachment stands meanwhile.
enum class VerifyMode { none, background, required };

// gpu: the PF is chosen by its distance to a GPU of the VM, best for all GPUs together; a GPU that
// has no such VF yet comes first.
enum class Near { gpu };

enum class HolderKind { external };

// How the guest reaches this host: by its VM's vsock device, or by TCP over the VF itself.
enum class GuestTransport { vsock, tcp };

// Runs a VMM such as QEMU, Cloud Hypervisor or Proxmox without libvirt. A VF is made ready for it;
// the rest is its own. Several attachments may have the same holder.
struct ExternalHolder {
    HolderKind kind = HolderKind::external;
    std::string name;                    // its own word for the VM, such as "qm-104"
    std::optional<std::uint32_t> uid{};  // gets the VF's VFIO nodes; absent: they stay as they are
    bool operator==(ExternalHolder const&) const = default;
};

// A request. What it leaves out comes from its pool, or is chosen: the PF too, if it names a
// network, a pool or a reservation.
struct AttachmentSpec {
    std::string vm;  // name or UUID; empty with a holder
    std::optional<PciAddress> pf;
    std::optional<std::uint16_t> vf;  // of `pf`; absent: any free VF
    std::optional<std::string> network;
    std::optional<IpAddress> address;  // absent with a network: its first free address
    VfSpec settings;
    std::vector<std::string> best_effort;  // members of settings that the driver may refuse
    Persistence persistence = Persistence::auto_;
    std::optional<VerifyMode> verify;  // absent: the pool's, or none
    std::uint32_t verify_timeout_seconds = 120;
    std::optional<Profile> verify_profile;   // absent: the pool's, or default
    std::uint32_t verify_every_seconds = 0;  // from the start of the last run; 0: never
    std::optional<std::string> pool{};
    std::optional<std::string> reservation{};  // takes one of its VFs
    // Where the VM finds the device, as in libvirt's <address type='pci'>: a place that
    // VmInfo::free_live or free_config names. Absent: libvirt chooses.
    std::optional<PciAddress> guest_address{};
    // true: a running VM without a free PCIe port gets the device in its persistent XML, with a
    // port of its own, from its next start. Absent: false.
    std::optional<bool> add_ports{};
    std::optional<bool> add_vsock{};              // true: a VM without a vsock device gets one
    std::optional<GuestTransport> guest_plane{};  // absent: vsock
    std::optional<Near> near{};                   // absent: wherever its PF is
    std::optional<ExternalHolder> holder{};       // absent: `vm`, which libvirt runs
    // The VF's address on the host: `vm` has it already, from somebody else, as a <hostdev>. It is
    // recorded as it is; nothing is plugged in. Not of a request for a VF.
    std::optional<PciAddress> adopt{};
    bool operator==(AttachmentSpec const&) const = default;
};

// So many of one VM can begin in one request.
inline constexpr std::size_t attachment_set_max = 32;

// A PF that was considered for a request without one.
struct Candidate {
    PciAddress pf;
    bool chosen = false;
    std::string reason;                     // "has 5 free VFs", "all 7 VFs of enp1s0 are in use"
    std::optional<PciDistance> distance{};  // to the GPU that the VF is to be near
    bool operator==(Candidate const&) const = default;
};

// The GPU that a VF is near, and what lies between it and the VF's PF.
struct NearGpu {
    PciAddress gpu;
    PciDistance distance = PciDistance::unknown;
    bool operator==(NearGpu const&) const = default;
};

enum class AttachmentState { attaching, attached, detaching };

// How an external holder opens its VF. Of the host as it is now, so never stored.
struct HolderAccess {
    std::optional<std::string> group;   // "/dev/vfio/27"; absent: the VF is not bound to VFIO now
    std::optional<std::string> device;  // "/dev/vfio/devices/vfio3", since Linux 6.6
    std::string qemu;                   // arguments: "-device vfio-pci,host=0000:01:10.0"
    bool operator==(HolderAccess const&) const = default;
};

struct Attachment {
    std::string id;       // 8 hex digits; the libvirt alias is ua-vfmgr-<id>
    AttachmentSpec spec;  // as requested, with what its pool and reservation add
    VfId vf;
    PciAddress vf_pci;                // the VF's address at attach time; the VM's XML names it
    std::string driver = "vfio-pci";  // the VF's driver for the VM: vfio-pci or a variant
    std::string vm_uuid;              // empty with a holder
    std::string vm;                   // its name, or the holder's
    VfSpec settings;                  // as resolved: with the chosen MAC and the network's VLAN
    // The VF's earlier values of the same members; restored at detach. Of an adopted one they are
    // not known, and absent: it gets those of a VF that was just made.
    VfSpec baseline;
    std::optional<IpAddress> address;
    bool live = false;    // in the running VM
    bool config = false;  // in the persistent XML
    AttachmentState state = AttachmentState::attaching;
    std::optional<Verification> verification;  // the latest run
    Time created_at{};
    // Absent: from an older vfmgrd that did not record it, or from a dry run.
    std::optional<std::string> operation{};     // the attach; leaves the store after 30 days
    std::optional<std::string> requested_by{};  // uid:0, token:<id>, cert:<name>
    std::vector<Candidate> candidates{};        // none: the request named the PF
    std::optional<NearGpu> near{};              // as when it was planned; of a request with `near`
    std::optional<ExternalHolder> holder{};     // absent: the VM is libvirt's
    // The user that had the VFIO nodes before the holder's uid; restored at detach.
    std::optional<std::uint32_t> node_owner{};
    std::optional<HolderAccess> access{};  // with a holder, in answers
    bool operator==(Attachment const&) const = default;
};

// So many characters; letters, digits and -._: alone, as it gets into messages and file names.
inline constexpr std::size_t holder_name_max = 64;
[[nodiscard]] bool can_be_a_holders(std::string_view name);
inline constexpr char const* rule_of_holder_names =
    "must have 1 to 64 characters: letters, digits, '-', '_', '.' and ':', with a letter or digit "
    "first";

// By TCP the guest is this attachment's alone, whatever else its VM has.
[[nodiscard]] bool is_on_tcp(AttachmentSpec const& spec);
// Names the guest that reports on the attachment: its VM's UUID, or "tcp:<id>". No UUID looks so.
[[nodiscard]] std::string guest_key(Attachment const& attachment);
// The attachment in such a key; empty if it is a VM's UUID.
[[nodiscard]] std::string attachment_of_guest(std::string_view key);

// Stands for the VM's UUID where an external holder has the VF. No UUID looks like it.
[[nodiscard]] std::string external_key(std::string_view holder);

[[nodiscard]] std::string hostdev_alias(std::string_view attachment_id);
[[nodiscard]] bool is_attachment_id(std::string_view text);

extern template struct Json<AttachmentSpec>;
// The rules for network, address and verification of a request.
void check_proof(JsonReader& reader, AttachmentSpec const& spec);
// The rules for the names of settings that a driver may refuse.
void check_best_effort(JsonReader& reader, std::vector<std::string> const& names);
extern template struct Json<Attachment>;

// What the host observed of a VF after its last attachment ended: function level reset done, every
// attached setting at its baseline again, none of the tenant's addresses left, no process holding
// it open. A VF without a certificate is in quarantine. Self-contained: the objects it names may be
// gone. A value.

// The start or the end of the attachment. Absent members: an earlier vfmgrd did not record them.
struct CertificateMark {
    std::optional<Time> at;                   // when the work on it began
    std::optional<std::string> operation;     // the operation that did it
    std::optional<std::string> requested_by;  // uid:0, token:<id>, cert:<name>, daemon
    bool operator==(CertificateMark const&) const = default;
};

// Named as in the kernel's reset_method. No other method is good enough.
enum class ResetMethod { flr };

struct VfReset {
    ResetMethod method = ResetMethod::flr;
    Time done_at{};
    bool operator==(VfReset const&) const = default;
};

// The attached settings, as the driver reported them.
struct Restored {
    VfSpec was;  // when the detach began
    VfSpec is;   // when the VF was observed
    bool operator==(Restored const&) const = default;
};

// An address that the tenant had and the VF no longer has.
template <class Address>
struct Rotated {
    Address was{};
    std::optional<Address> is;  // absent: the driver does not report it
    bool operator==(Rotated const&) const = default;
};

// Absent: the attachment set none, or set the address that the VF had before.
struct RotatedAddresses {
    std::optional<Rotated<MacAddress>> mac;
    std::optional<Rotated<Guid>> node_guid;
    std::optional<Rotated<Guid>> port_guid;
    bool operator==(RotatedAddresses const&) const = default;
};

struct Certificate {
    VfId vf;
    PciAddress vf_pci;
    std::string attachment;  // the attachment that ended
    std::string vm;
    VfSpec settings;                    // as the driver reports them
    std::optional<std::string> driver;  // the one that the free VF is bound to
    Time observed_at{};
    CertificateMark attached{};
    CertificateMark detached{};
    std::optional<VfReset> reset{};  // absent: an earlier vfmgrd did not record it
    Restored restored{};
    RotatedAddresses rotated{};
    // Read right before the reset, which may clear them; absent: not reported by the PF's driver.
    std::optional<VfCounters> counters{};
    bool operator==(Certificate const&) const = default;
};

extern template struct Json<Certificate>;

}  // namespace vfmgr
