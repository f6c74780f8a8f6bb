"""What a command does where it takes several rooms, the trainer's among them: no options and no
printing.
"""
