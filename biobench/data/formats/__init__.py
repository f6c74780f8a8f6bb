"""What several native formats share: standoff annotations, tagged tokens, marked mentions."""
