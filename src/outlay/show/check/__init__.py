"""What `outlay check` answers: in full, a line a finding, as commands of a workflow, as one object."""
